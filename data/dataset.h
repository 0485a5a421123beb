// The two readings of a run's token files: shuffled, blended and endless for training; once, in
// order, for validation. Both give int32 token ids and know nothing of ranks.
//
// Opening finds every problem in the files (all of them in one ConfigError, under keys such as
// "data.train[0].path") before anything is allocated. Token ids are checked against the vocabulary
// at once as far as 64 MiB of files reach, and all others when they are read. Local to a rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/config.h"
#include "data/files/token_file.h"
#include "data/sampler.h"

namespace redspine {

struct TrainingDataOptions {
  std::int64_t sequence_length;    // T, tokens; a sample is T + 1 of them
  std::int64_t vocab_size;         // token ids are below it
  std::int64_t global_batch_size;  // samples per step; the data must have as many
  std::uint64_t seed;              // of the order
};

/// Where a sample of the run was read.
struct SampleOrigin {
  const TokenFile& file;  // of the TrainingData that gave it
  std::int64_t token;     // the sample's first, counted from the file's beginning
};

/// Tokens at the end of a training file, fewer than T unless it is all of it, that are in no
/// sample.
struct UnusedTokens {
  const TokenFile& file;
  std::int64_t count;  // above 0
};

/// Training samples. Sample w of a file is its tokens [w * T, w * T + T], so that neighbours share
/// one token, and each token that is in a sample, but a file's first, is a target once per epoch.
/// No sample spans two files.
class TrainingData {
 public:
  TrainingData(const DataConfig& config, const TrainingDataOptions& options);

  std::int64_t sequence_length() const { return sequence_length_; }
  std::int64_t num_samples() const {
    return sampler_.num_windows();
  }  // different ones, over all entries

  /// In the order in which they are read.
  std::vector<const TokenFile*> files() const;
  std::vector<UnusedTokens> unused_tokens() const;

  /// Writes the samples [sample_begin, sample_begin + count) of the run to tokens [count][T + 1].
  /// Any range is possible; going forwards is cheapest. Not safe from several threads.
  void fill(std::int64_t sample_begin, std::int64_t count, std::span<std::int32_t> tokens);
  /// Where fill() reads one sample, T + 1 tokens. Going forwards is cheapest.
  SampleOrigin origin_of(std::int64_t sample);

 private:
  SampleOrigin next_origin();

  std::int64_t sequence_length_;
  std::int64_t vocab_size_;
  std::vector<std::vector<TokenFile>> entries_;  // [entry][file]
  Sampler sampler_;
};

/// Every token of the validation files but each file's first, as a target exactly once.
class ValidationData {
 public:
  ValidationData(const DataConfig& config, std::int64_t sequence_length, std::int64_t vocab_size);

  std::int64_t sequence_length() const { return sequence_length_; }
  std::int64_t num_windows() const { return window_ends_.empty() ? 0 : window_ends_.back(); }
  std::int64_t num_tokens() const { return num_tokens_; }  // targets in all

  /// In the order in which they are read.
  std::vector<const TokenFile*> files() const;

  /// Writes the windows [window_begin, window_begin + count) to tokens [count][T] and their
  /// successors to targets [count][T]. The last window of a file may be short: it is filled up
  /// with token 0 and target -1, which counts nowhere.
  void fill(std::int64_t window_begin, std::int64_t count, std::span<std::int32_t> tokens,
            std::span<std::int32_t> targets) const;

 private:
  std::int64_t sequence_length_;
  std::int64_t vocab_size_;
  std::vector<TokenFile> files_;
  std::vector<std::int64_t> window_ends_;  // [file] windows up to its end
  std::int64_t num_tokens_ = 0;
};

/// The hash (xxh3) of one training sample [T + 1]. A step's batch hash is the sum modulo 2^64 over
/// its samples, so it depends neither on their order nor on the layout.
std::uint64_t sample_hash(std::span<const std::int32_t> tokens);

}  // namespace redspine
