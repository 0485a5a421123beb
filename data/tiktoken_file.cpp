// tiktoken's file of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "data/bpe_file.h"
#include "data/splitter.h"

namespace redspine {
namespace {

constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)";

constexpr std::size_t kMaxTokenSize = 1024;  // bytes; finding the merges takes its square

/// What the file leaves out, for the encodings that are known by their number of ranks.
struct KnownEncoding {
  std::size_t num_ranks;
  std::string_view pattern;
  std::string_view end_of_text;
  std::int32_t end_of_text_id;
};
constexpr KnownEncoding kKnownEncodings[] = {
    {100256, kCl100kPattern, "<|endoftext|>", 100257},
    {128000, kLlama3Pattern, "<|end_of_text|>", 128001},
    {199998, kO200kPattern, "<|endoftext|>", 199999},
};

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  unsigned bits = 0;
  int num_bits = 0;
  for (const char digit : text) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<unsigned>(value);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xFF);
  }
  return bytes;
}

void add_line(std::string_view line, std::size_t number, BpeModel& model,
              const TokenizerSource& source) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::optional<std::string> bytes = decode_base64(line.substr(0, space));
  std::int32_t rank = -1;
  const std::string_view digits = line.substr(std::min(space + 1, line.size()));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (!bytes || bytes->empty() || error != std::errc() || end != digits.data() + digits.size() ||
      rank < 0 || rank >= kMaxVocabSize || bytes->size() > kMaxTokenSize) {
    source.fail(
        fmt::format("line {} is \"{}\"; legal: 1 to {} bytes in base64, a space, and a rank "
                    "from 0 to {}",
                    number, line.substr(0, 80), kMaxTokenSize, kMaxVocabSize - 1));
  }
  const auto id = static_cast<std::size_t>(rank);
  if (id >= model.tokens.size()) model.tokens.resize(id + 1);
  if (!model.tokens[id].empty()) {
    source.fail(
        fmt::format("line {} has rank {}, as an earlier line; legal: each once", number, rank));
  }
  model.tokens[id] = *bytes;
}

/// tiktoken joins any two neighbours that together are a token, so every way to cut a token in two
/// is a merge of the token's rank.
void add_merges(BpeModel& model) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (!model.tokens[id].empty()) ids.emplace(model.tokens[id], static_cast<std::int32_t>(id));
  }
  for (std::size_t i = 0; i < model.tokens.size(); ++i) {
    const std::string_view token = model.tokens[i];
    const auto id = static_cast<std::int32_t>(i);
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ids.find(token.substr(0, cut));
      const auto right = ids.find(token.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      model.merges.push_back({left->second, right->second, id, id});
    }
  }
}

void add_end_of_text(std::size_t num_ranks, BpeModel& model) {
  std::string_view name = "<|endoftext|>";
  const auto free = std::find(model.tokens.begin(), model.tokens.end(), "");
  auto id = static_cast<std::int32_t>(free - model.tokens.begin());
  model.pattern = kGpt2Pattern;
  for (const KnownEncoding& known : kKnownEncodings) {
    if (known.num_ranks != num_ranks || model.tokens.size() != num_ranks) continue;
    model.pattern = known.pattern;
    name = known.end_of_text;
    id = known.end_of_text_id;
  }
  if (static_cast<std::size_t>(id) >= model.tokens.size()) {
    model.tokens.resize(static_cast<std::size_t>(id) + 1);
  }
  model.tokens[static_cast<std::size_t>(id)] = name;
  model.added_tokens.push_back({std::string(name), id, AddedToken::Kind::special});
  model.end_of_text = id;
}

}  // namespace

BpeModel parse_tiktoken(std::string_view text, const TokenizerSource& source) {
  BpeModel model;
  model.is_whole_piece_first = true;
  std::size_t num_ranks = 0;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (!line.empty()) {
      add_line(line, number, model, source);
      ++num_ranks;
    }
    begin = end + 1;
  }
  if (num_ranks == 0) source.fail("has no ranks; legal: lines of bytes in base64 and a rank");
  add_merges(model);
  add_end_of_text(num_ranks, model);
  check(model, source);
  return model;
}

}  // namespace redspine
