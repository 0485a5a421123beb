// tiktoken's file of ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/splitter.h"

namespace redspine {
namespace {

constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)";

constexpr std::size_t kMaxTokenSize = 1024;  // bytes; finding the merges takes its square

/// The published tables. Any other may belong to any pattern, whatever the number of its ranks.
struct KnownRanks {
  std::string_view name;
  std::size_t num_ranks;
  std::uint64_t hash;  // hash_of()
  RankEncoding encoding;
};
constexpr KnownRanks kKnownRanks[] = {
    {"GPT-2", 50256, 0x38824f2c2063699b, {kGpt2Pattern, "<|endoftext|>", 50256}},
    {"p50k", 50280, 0x80a02f24d08aa6b8, {kGpt2Pattern, "<|endoftext|>", 50256}},
    {"cl100k", 100256, 0x6fb518802d59c138, {kCl100kPattern, "<|endoftext|>", 100257}},
    {"o200k", 199998, 0xb44b3fb21bd7171c, {kO200kPattern, "<|endoftext|>", 199999}},
    {"Llama 3", 128000, 0x1c315dc09dc10f54, {kLlama3Pattern, "<|end_of_text|>", 128001}},
    {"Llama 4", 200000, 0x10ee959758ad68ed, {kO200kPattern, "<|end_of_text|>", 200001}},
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

void add_end_of_text(const RankEncoding& encoding, BpeModel& model, const TokenizerSource& source) {
  const auto id = static_cast<std::size_t>(encoding.end_of_text_id);
  if (id >= model.tokens.size()) model.tokens.resize(id + 1);
  if (!model.tokens[id].empty()) {
    source.fail(fmt::format("has rank {}, the id of {}", id, encoding.end_of_text));
  }
  model.tokens[id] = encoding.end_of_text;
  model.added_tokens.push_back(
      {std::string(encoding.end_of_text), encoding.end_of_text_id, AddedToken::Kind::special});
  model.end_of_text = encoding.end_of_text_id;
}

std::size_t num_tokens(const BpeModel& model) {
  return model.tokens.size() -
         static_cast<std::size_t>(std::count(model.tokens.begin(), model.tokens.end(), ""));
}

/// Of ranks and bytes, however the file spells them.
std::uint64_t hash_of(const BpeModel& model) {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  const std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string& token = model.tokens[id];
    if (token.empty()) continue;
    const std::uint32_t header[] = {static_cast<std::uint32_t>(id),
                                    static_cast<std::uint32_t>(token.size())};
    XXH3_64bits_update(state.get(), header, sizeof(header));
    XXH3_64bits_update(state.get(), token.data(), token.size());
  }
  return XXH3_64bits_digest(state.get());
}

const RankEncoding& find_encoding(const BpeModel& model, const TokenizerSource& source) {
  const std::size_t num_ranks = num_tokens(model);
  const std::uint64_t hash = hash_of(model);
  std::vector<std::string> names;
  for (const KnownRanks& known : kKnownRanks) {
    if (known.num_ranks == num_ranks && known.hash == hash) return known.encoding;
    names.push_back(fmt::format("{} ({})", known.name, known.num_ranks));
  }
  source.fail(
      fmt::format("has {} ranks, which are not those of an encoding that is known; legal: {}. The "
                  "file does not say how text is cut into pieces: for another encoding, or a table "
                  "that was changed, give the tokenizer.json of its model, which does",
                  num_ranks, fmt::join(names, ", ")));
}

BpeModel read_ranks(std::string_view text, const TokenizerSource& source) {
  BpeModel model;
  model.is_whole_piece_first = true;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (!line.empty()) add_line(line, number, model, source);
    begin = end + 1;
  }
  if (model.tokens.empty()) {
    source.fail("has no ranks; legal: lines of bytes in base64 and a rank");
  }
  return model;
}

BpeModel complete(BpeModel model, const RankEncoding& encoding, const TokenizerSource& source) {
  add_merges(model);
  model.pattern = encoding.pattern;
  add_end_of_text(encoding, model, source);
  check(model, source);
  return model;
}

}  // namespace

BpeModel parse_tiktoken(std::string_view text, const TokenizerSource& source) {
  BpeModel model = read_ranks(text, source);
  const RankEncoding& encoding = find_encoding(model, source);
  return complete(std::move(model), encoding, source);
}

BpeModel parse_tiktoken(std::string_view text, const RankEncoding& encoding,
                        const TokenizerSource& source) {
  return complete(read_ranks(text, source), encoding, source);
}

}  // namespace redspine
