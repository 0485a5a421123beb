// Brings batches to the device, a micro-batch at a time: tokens and their successors as the targets
// from training samples of T + 1 tokens, or both from validation windows. Local.
#pragma once

#include <vector>

#include "data/prefetcher.h"
#include "model/gpt.h"

namespace redspine {

class BatchFeed {
 public:
  /// `device` outlives it.
  BatchFeed(Device& device, MicroBatchShape shape);

  const MicroBatchShape& shape() const { return shape_; }

  /// Micro-batch `index` of a rank's training batch. The views are valid until the next call.
  MicroBatch training(const Batch& batch, std::int64_t index);

  /// Windows of validation data, [B][T] each; the views are valid until the next call.
  MicroBatch windows(const std::vector<std::int32_t>& tokens,
                     const std::vector<std::int32_t>& targets);

 private:
  Device& device_;
  MicroBatchShape shape_;
  std::vector<std::int32_t> host_tokens_;
  std::vector<std::int32_t> host_targets_;
  Tensor tokens_BT_;
  Tensor targets_BT_;
  Tensor samples_B_;
};

}  // namespace redspine
