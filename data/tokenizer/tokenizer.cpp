#include "data/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/io/file.h"
#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "tensor/error.h"

namespace redspine {

void ByteTokenizer::encode(std::string_view document, std::vector<std::int32_t>& tokens) const {
  tokens.reserve(tokens.size() + document.size());
  for (const char byte : document) tokens.push_back(static_cast<unsigned char>(byte));
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == kEndOfText) {
      text += "<|endoftext|>";
    } else if (tokens[i] >= 0 && tokens[i] < kEndOfText) {
      text += static_cast<char>(tokens[i]);
    } else {
      throw Error(fmt::format("token {} has id {}; legal for the byte tokenizer: 0 to {}", i,
                              tokens[i], kEndOfText));
    }
  }
  return text;
}

namespace {

constexpr std::int64_t kMaxFileSize = std::int64_t{1} << 30;  // bytes

std::string read_file(const std::string& path, const std::string& key) {
  const File file = File::open(path, key);
  const std::int64_t size = file.size();
  if (size > kMaxFileSize) {
    throw ConfigError(key, fmt::format("{}: has {} bytes, more than any tokenizer; legal: up to {}",
                                       path, size, kMaxFileSize));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

BpeModel read_model(const std::string& path, const std::string& key) {
  const TokenizerSource source = {path, key};
  if (look_at(path, key) != PathKind::folder) {
    const std::string text = read_file(path, key);
    const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    return text.substr(first, 1) == "{" ? parse_tokenizer_json(text, source)
                                        : parse_tiktoken(text, source);
  }
  const std::string json = path + "/tokenizer.json";
  if (exists(json, key)) {
    return parse_tokenizer_json(read_file(json, key), {json, key});
  }
  const std::string vocab = path + "/vocab.json";
  const std::string merges = path + "/merges.txt";
  if (!exists(vocab, key) || !exists(merges, key)) {
    source.fail("is a folder without tokenizer.json, and without vocab.json and merges.txt");
  }
  return parse_vocab_and_merges(read_file(vocab, key), read_file(merges, key), source);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& name, const std::string& key,
                                          SpecialTokens special_tokens) {
  if (name.empty() || name == "bytes") return std::make_unique<ByteTokenizer>();
  return std::make_unique<BpeTokenizer>(read_model(name, key), TokenizerSource{name, key},
                                        special_tokens);
}

}  // namespace redspine
