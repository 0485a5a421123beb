#include "trainer/batch_feed.h"

#include <algorithm>
#include <cassert>

namespace redspine {

BatchFeed::BatchFeed(Device& device, MicroBatchShape shape)
    : device_(device),
      shape_(shape),
      host_tokens_(static_cast<std::size_t>(shape.num_sequences * shape.sequence_length)),
      host_targets_(host_tokens_.size()),
      tokens_BT_(device, DType::i32, {shape.num_sequences, shape.sequence_length}),
      targets_BT_(device, DType::i32, {shape.num_sequences, shape.sequence_length}),
      samples_B_(device, DType::i64, {shape.num_sequences}) {}

MicroBatch BatchFeed::training(const Batch& batch, std::int64_t index) {
  const auto num_rows = static_cast<std::size_t>(shape_.num_sequences);
  const auto length = static_cast<std::size_t>(shape_.sequence_length);
  const std::size_t first_row = static_cast<std::size_t>(index) * num_rows;
  for (std::size_t row = 0; row < num_rows; ++row) {
    const std::int32_t* sample = batch.tokens.data() + (first_row + row) * (length + 1);
    std::copy_n(sample, length, host_tokens_.data() + row * length);
    std::copy_n(sample + 1, length, host_targets_.data() + row * length);
  }
  device_.upload(samples_B_, host_view(std::span(batch.samples).subspan(first_row, num_rows)));
  return windows(host_tokens_, host_targets_);
}

MicroBatch BatchFeed::windows(const std::vector<std::int32_t>& tokens,
                              const std::vector<std::int32_t>& targets) {
  const Shape flat{tokens_BT_.count()};
  device_.upload(tokens_BT_.view().reshape(flat), host_view(std::span(tokens)));
  device_.upload(targets_BT_.view().reshape(flat), host_view(std::span(targets)));
  return {.tokens_BT = tokens_BT_, .targets_BT = targets_BT_, .samples_B = samples_B_};
}

}  // namespace redspine
