// Trains a byte-level byte-pair encoding (Sennrich et al. 2016, on bytes as in GPT-2): counts the
// pieces of all documents, then joins the most frequent pair of neighbours again and again.
//
// The result depends on the counts alone, so neither on the order of documents nor on the number of
// threads. Memory grows with the distinct pieces, not with the text. Local to a rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/splitter.h"
#include "tensor/error.h"

namespace redspine {

struct BpeTrainingConfig {
  std::int32_t vocab_size = 0;  // ids at most: 256 bytes, merges, and <|endoftext|>
  std::int64_t min_count = 2;   // of a pair that is joined
  std::string pattern = std::string(kGpt2Pattern);  // of the pre-tokenizer

  /// Adds what is wrong, under the command line's options.
  void validate(ConfigProblems& problems) const;
};

class BpeTrainer {
 public:
  /// ConfigError if `config` is wrong.
  explicit BpeTrainer(BpeTrainingConfig config);
  ~BpeTrainer();
  BpeTrainer(const BpeTrainer&) = delete;
  BpeTrainer& operator=(const BpeTrainer&) = delete;

  /// Counts the pieces of a document, or of a part of one that ends at a cut point. Any number of
  /// threads may do so at once.
  void count(std::string_view text);
  /// As Tokenizer::cut_point().
  std::size_t cut_point(std::string_view text) const;
  /// Distinct pieces so far and, of those that several threads met, each thread's.
  std::int64_t num_pieces() const;

  /// The model of everything counted: ids 0 to 255 are the bytes in GPT-2's order, then one
  /// per merge, and last <|endoftext|>. Of pairs that are equally frequent, the one of the smallest
  /// ids comes first, the left one compared before the right one. The vocabulary stays smaller than
  /// asked for where no pair reaches min_count. `on_progress` gets merges done and wanted, now and
  /// then. Ends the counting: to be called once.
  BpeModel train(const std::function<void(std::int64_t, std::int64_t)>& on_progress = {});

 private:
  struct Counter;
  class Lease;

  BpeTrainingConfig config_;
  std::unique_ptr<Splitter> cutter_;  // for cut_point(), which changes nothing in it
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Counter>> counters_;  // all of them
  std::vector<Counter*> idle_;                      // guarded by mutex_, as counters_
};

}  // namespace redspine
