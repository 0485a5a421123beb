#include "data/tokenizer.h"

#include <fmt/format.h>

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

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& name, const std::string& key,
                                          SpecialTokens /*special_tokens*/) {
  if (name.empty() || name == "bytes") return std::make_unique<ByteTokenizer>();
  throw ConfigError(key, fmt::format("is \"{}\"; legal: bytes", name));
}

}  // namespace redspine
