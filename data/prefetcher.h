// Produces a data rank's batches ahead of their use, in a thread of its own.
//
// Batch b holds the global samples [b * G, (b + 1) * G), of which data rank r gets
// [b * G + r * G/R, b * G + (r + 1) * G/R): so all layouts see the same samples at the same step.
// Local to a rank. The TrainingData is borrowed and, as long as this lives, used by its thread
// only.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "data/dataset.h"

namespace redspine {

struct PrefetcherOptions {
  std::int64_t samples_consumed = 0;   // global samples of the run before the first batch
  std::int64_t global_batch_size = 0;  // G; a multiple of num_data_ranks
  int data_rank = 0;
  int num_data_ranks = 1;  // R
};

/// One rank's share of a global batch.
struct Batch {
  std::int64_t first_sample;          // of the whole global batch
  std::vector<std::int32_t> tokens;   // [G/R][T + 1]
  std::vector<std::int64_t> samples;  // [G/R] global index of each row
  std::uint64_t hash;                 // sum of sample_hash over the rows, modulo 2^64
};

class Prefetcher {
 public:
  Prefetcher(TrainingData& data, const PrefetcherOptions& options);
  ~Prefetcher();  // stops after the batch in the making, if any
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next batch, waiting for it if need be. If reading failed, throws what it threw, once the
  /// batches before are used up, and at every call from then on.
  Batch next();

 private:
  static constexpr std::size_t kDepth = 2;  // batches that wait; one more is in the making

  void produce();
  Batch make_batch(std::int64_t first_sample) const;

  TrainingData& data_;
  PrefetcherOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;  // last: it starts once all the others exist
};

}  // namespace redspine
