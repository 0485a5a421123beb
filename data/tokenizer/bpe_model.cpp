#include "data/tokenizer/bpe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "data/tokenizer/pair_map.h"
#include "tensor/error.h"

namespace redspine {
namespace {

void check_tokens(const BpeModel& model, const TokenizerSource& source) {
  const std::unordered_set<std::int32_t> outside = ids_outside_vocabulary(model);
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].empty() || outside.contains(static_cast<std::int32_t>(id))) continue;
    const auto [other, is_new] = ids.emplace(model.tokens[id], id);
    if (is_new) continue;
    source.fail(
        fmt::format("tokens {} and {} are the same bytes; legal: each once", other->second, id));
  }
}

void check_bytes(const BpeModel& model, const TokenizerSource& source) {
  const std::vector<std::int32_t> ids = byte_ids(model);
  const auto missing = std::find(ids.begin(), ids.end(), -1);
  if (missing == ids.end()) return;
  source.fail(
      fmt::format("has no token for byte 0x{:02X}; legal: a byte-level vocabulary, with one "
                  "for each of the 256 bytes",
                  missing - ids.begin()));
}

void check_merges(const BpeModel& model, const TokenizerSource& source) {
  const auto num_ids = static_cast<std::int32_t>(model.tokens.size());
  PairMap<bool> seen;
  for (std::size_t i = 0; i < model.merges.size(); ++i) {
    const BpeMerge& merge = model.merges[i];
    for (const std::int32_t id : {merge.left, merge.right, merge.result}) {
      if (id >= 0 && id < num_ids && !model.tokens[static_cast<std::size_t>(id)].empty()) continue;
      source.fail(fmt::format("merge {} has token {}, which does not exist", i, id));
    }
    const auto token = [&model](std::int32_t id) -> const std::string& {
      return model.tokens[static_cast<std::size_t>(id)];
    };
    if (token(merge.left) + token(merge.right) != token(merge.result)) {
      source.fail(fmt::format("merge {} of tokens {} and {} does not give token {}", i, merge.left,
                              merge.right, merge.result));
    }
    const std::int32_t rank_before = i == 0 ? -1 : model.merges[i - 1].rank;
    const bool is_equal = i > 0 && merge.result == model.merges[i - 1].result;
    if (merge.rank < rank_before || (merge.rank == rank_before && !is_equal)) {
      source.fail(fmt::format("merge {} has rank {} after {}; legal: in order, one token per rank",
                              i, merge.rank, rank_before));
    }
    bool& is_seen = seen[token_pair(merge.left, merge.right)];
    if (is_seen) {
      source.fail(fmt::format("merge {} of tokens {} and {} stands twice; legal: once", i,
                              merge.left, merge.right));
    }
    is_seen = true;
  }
}

void check_added_tokens(const BpeModel& model, const TokenizerSource& source) {
  std::unordered_set<std::string_view> names;
  for (const AddedToken& token : model.added_tokens) {
    if (token.name.empty()) source.fail(fmt::format("added token {} has no name", token.id));
    if (!names.insert(token.name).second) {
      source.fail(fmt::format("added token \"{}\" stands twice; legal: once", token.name));
    }
    const bool is_token = token.id >= 0 && static_cast<std::size_t>(token.id) < model.tokens.size();
    if (!is_token || (!token.is_in_vocabulary &&
                      model.tokens[static_cast<std::size_t>(token.id)] != token.name)) {
      source.fail(
          fmt::format("added token \"{}\" has the id {} of another token", token.name, token.id));
    }
  }
}

}  // namespace

void TokenizerSource::fail(const std::string& text) const {
  throw ConfigError(key, path + ": " + text);
}

std::unordered_set<std::int32_t> ids_outside_vocabulary(const BpeModel& model) {
  std::unordered_set<std::int32_t> ids;
  for (const AddedToken& token : model.added_tokens) {
    if (!token.is_in_vocabulary) ids.insert(token.id);
  }
  return ids;
}

std::vector<std::int32_t> byte_ids(const BpeModel& model) {
  const std::unordered_set<std::int32_t> outside = ids_outside_vocabulary(model);
  std::vector<std::int32_t> ids(256, -1);
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].size() != 1 || outside.contains(static_cast<std::int32_t>(id))) continue;
    std::int32_t& byte_id = ids[static_cast<unsigned char>(model.tokens[id][0])];
    if (byte_id < 0) byte_id = static_cast<std::int32_t>(id);
  }
  return ids;
}

void check(const BpeModel& model, const TokenizerSource& source) {
  check_added_tokens(model, source);
  check_tokens(model, source);
  check_bytes(model, source);
  check_merges(model, source);
}

void check_is_whole(const BpeModel& model, const TokenizerSource& source) {
  constexpr std::size_t kMaxShare = 100;  // one of so many
  std::vector<bool> is_added(model.tokens.size(), false);
  for (const AddedToken& token : model.added_tokens) {
    is_added[static_cast<std::size_t>(token.id)] = true;
  }
  std::vector<bool> is_given(model.tokens.size(), false);
  for (const BpeMerge& merge : model.merges) {
    is_given[static_cast<std::size_t>(merge.result)] = true;
  }
  std::size_t num_long = 0;
  std::vector<std::size_t> missing;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].size() < 2 || is_added[id]) continue;
    ++num_long;
    if (!is_given[id]) missing.push_back(id);
  }
  if (missing.size() * kMaxShare <= num_long) return;
  source.fail(fmt::format(
      "has {} merges, which give {} of its {} tokens of several bytes, and not token "
      "{}; legal: a whole table, in which at most one in {} is given by none",
      model.merges.size(), num_long - missing.size(), num_long, missing.front(), kMaxShare));
}

std::int32_t find_end_of_text(const BpeModel& model, const TokenizerSource& source) {
  for (const std::string_view name : {"<|endoftext|>", "<|end_of_text|>", "</s>"}) {
    for (const AddedToken& token : model.added_tokens) {
      if (token.name == name) return token.id;
    }
  }
  source.fail(
      "has no token that ends a text; legal: one that is called <|endoftext|>, "
      "<|end_of_text|> or </s>");
}

}  // namespace redspine
