#include "data/tokenizer/bpe_learner.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "data/tokenizer/byte_alphabet.h"

namespace redspine {

BpeLearner::BpeLearner(const PieceCounter& pieces) {
  std::array<std::int32_t, 256> ids = {};  // [byte]
  const std::array<unsigned char, 256> bytes = bytes_in_alphabet_order();
  for (std::size_t id = 0; id < bytes.size(); ++id) {
    ids[bytes[id]] = static_cast<std::int32_t>(id);
  }
  words_.reserve(pieces.num_pieces());
  for (std::size_t i = 0; i < pieces.num_pieces(); ++i) {
    const std::string_view piece = pieces.piece(i);
    words_.push_back({symbols_.size(), piece.size(), pieces.count(i)});
    for (const char byte : piece) symbols_.push_back(ids[static_cast<unsigned char>(byte)]);
  }
}

void BpeLearner::add_occurrence(TokenPair pair, std::uint32_t word) {
  Pair& found = pairs_[pair];
  found.count += words_[word].count;
  if (found.words.empty() || found.words.back() != word) found.words.push_back(word);
}

void BpeLearner::count_pairs() {
  for (std::uint32_t word = 0; word < words_.size(); ++word) {
    const Word& place = words_[word];
    for (std::size_t i = place.begin + 1; i < place.begin + place.length; ++i) {
      add_occurrence(token_pair(symbols_[i - 1], symbols_[i]), word);
    }
  }
  std::vector<Candidate> candidates;
  candidates.reserve(pairs_.size());
  pairs_.for_each([&candidates](TokenPair pair, const Pair& found) {
    candidates.push_back({found.count, pair});
  });
  queue_ = std::priority_queue<Candidate>(std::less<Candidate>(), std::move(candidates));
}

void BpeLearner::learn(std::size_t num_tokens, std::int64_t min_count,
                       const std::function<void(std::int64_t, std::int64_t)>& on_progress,
                       BpeModel& model) {
  std::unordered_map<std::string, std::int32_t> ids;
  const auto add_token = [&](const std::string& bytes) {
    const auto [place, is_new] = ids.emplace(bytes, static_cast<std::int32_t>(model.tokens.size()));
    if (is_new) model.tokens.push_back(bytes);
    return place->second;
  };
  for (const unsigned char byte : bytes_in_alphabet_order()) {
    add_token(std::string(1, static_cast<char>(byte)));
  }
  count_pairs();
  while (model.tokens.size() < num_tokens && !queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    const std::int64_t count = pairs_[best.pair].count;
    if (count < min_count) continue;
    if (count < best.count) {
      queue_.push({count, best.pair});
      continue;
    }
    const std::int32_t left = left_of(best.pair);
    const std::int32_t right = right_of(best.pair);
    // Two pairs may spell the same token: then it has two merges.
    const std::int32_t result = add_token(model.tokens[static_cast<std::size_t>(left)] +
                                          model.tokens[static_cast<std::size_t>(right)]);
    model.merges.push_back({left, right, result, static_cast<std::int32_t>(model.merges.size())});
    join(best.pair, result);
    if (on_progress) {
      on_progress(static_cast<std::int64_t>(model.tokens.size()),
                  static_cast<std::int64_t>(num_tokens));
    }
  }
}

void BpeLearner::join(TokenPair pair, std::int32_t result) {
  const std::vector<std::uint32_t> words = std::move(pairs_[pair].words);
  new_pairs_.clear();
  for (const std::uint32_t word : words) join_in_word(pair, result, word);
  pairs_[pair] = {};
  std::sort(new_pairs_.begin(), new_pairs_.end());
  new_pairs_.erase(std::unique(new_pairs_.begin(), new_pairs_.end()), new_pairs_.end());
  for (const TokenPair added : new_pairs_) queue_.push({pairs_[added].count, added});
}

void BpeLearner::join_in_word(TokenPair pair, std::int32_t result, std::uint32_t word) {
  Word& place = words_[word];
  std::int32_t* const symbols = symbols_.data() + place.begin;
  const auto replace_neighbours = [&](TokenPair old, TokenPair added) {
    pairs_[old].count -= place.count;
    add_occurrence(added, word);
    new_pairs_.push_back(added);
  };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < place.length; ++i) {
    const bool is_pair = i + 1 < place.length && token_pair(symbols[i], symbols[i + 1]) == pair;
    if (!is_pair) {
      symbols[kept++] = symbols[i];
      continue;
    }
    if (kept > 0) {
      replace_neighbours(token_pair(symbols[kept - 1], left_of(pair)),
                         token_pair(symbols[kept - 1], result));
    }
    ++i;
    if (i + 1 < place.length) {
      replace_neighbours(token_pair(right_of(pair), symbols[i + 1]),
                         token_pair(result, symbols[i + 1]));
    }
    symbols[kept++] = result;
  }
  place.length = kept;
}

}  // namespace redspine
