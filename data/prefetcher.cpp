#include "data/prefetcher.h"

#include <cassert>
#include <numeric>
#include <utility>

namespace redspine {

Prefetcher::Prefetcher(TrainingData& data, const PrefetcherOptions& options)
    : data_(data), options_(options), thread_(&Prefetcher::produce, this) {
  assert(options.global_batch_size % options.num_data_ranks == 0);
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Batch Prefetcher::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
  if (ready_.empty()) std::rethrow_exception(failure_);
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

void Prefetcher::produce() {
  try {
    for (std::int64_t first = options_.samples_consumed;; first += options_.global_batch_size) {
      Batch batch = make_batch(first);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ready_.size() < kDepth || stopping_; });
      if (stopping_) return;
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

Batch Prefetcher::make_batch(std::int64_t first_sample) const {
  const std::int64_t num_rows = options_.global_batch_size / options_.num_data_ranks;
  const std::int64_t first_row = first_sample + options_.data_rank * num_rows;
  const auto row_size = static_cast<std::size_t>(data_.sequence_length() + 1);
  Batch batch{.first_sample = first_sample,
              .tokens = std::vector<std::int32_t>(static_cast<std::size_t>(num_rows) * row_size),
              .samples = std::vector<std::int64_t>(static_cast<std::size_t>(num_rows)),
              .hash = 0};
  std::iota(batch.samples.begin(), batch.samples.end(), first_row);
  data_.fill(first_row, num_rows, batch.tokens);
  for (std::size_t row = 0; row < batch.samples.size(); ++row) {
    batch.hash += sample_hash(std::span(batch.tokens).subspan(row * row_size, row_size));
  }
  return batch;
}

}  // namespace redspine
