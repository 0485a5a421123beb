// The merges of a byte-pair encoding from counted pieces: the greedy loop of Sennrich et al. 2016,
// in which each merge costs time for the pieces that have its pair only.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/pair_map.h"
#include "data/tokenizer/piece_counter.h"

namespace redspine {

class BpeLearner {
 public:
  /// Copies what it needs of `pieces`. Starts from the 256 bytes, in GPT-2's order.
  explicit BpeLearner(const PieceCounter& pieces);

  /// Joins pairs that occur `min_count` times or more until there are `num_tokens`, then gives the
  /// tokens [id] and the merges. To be called once. `on_progress` gets tokens made and wanted.
  void learn(std::size_t num_tokens, std::int64_t min_count,
             const std::function<void(std::int64_t, std::int64_t)>& on_progress, BpeModel& model);

 private:
  struct Word {
    std::size_t begin;   // in symbols_
    std::size_t length;  // symbols left
    std::int64_t count;
  };
  struct Pair {
    std::int64_t count = 0;            // occurrences in the text
    std::vector<std::uint32_t> words;  // that have it or had it
  };
  struct Candidate {
    std::int64_t count;  // when it was put into the queue; later it can only be less
    TokenPair pair;
    /// The most frequent pair is the greatest, of equally frequent ones that of the smallest ids.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void count_pairs();
  void add_occurrence(TokenPair pair, std::uint32_t word);
  void join(TokenPair pair, std::int32_t result);
  void join_in_word(TokenPair pair, std::int32_t result, std::uint32_t word);

  std::vector<std::int32_t> symbols_;
  std::vector<Word> words_;
  PairMap<Pair> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<TokenPair> new_pairs_;  // of the merge under way
};

}  // namespace redspine
