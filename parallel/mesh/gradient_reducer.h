// Adds gradients over the data axis, a bucket at a time: a bucket's all-reduce starts as soon as
// the backward pass of its block has ended for the last micro-batch of a step, and runs under that
// of the blocks before it. The model calls ready(), the trainer finish(). Collective: buckets
// become ready in one order on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/mesh/process_mesh.h"
#include "parallel/partition.h"
#include "tensor/tensor.h"

namespace redspine {

/// Rows of one parameter that other tensor ranks hold as well (key/value heads fewer than tensor
/// ranks). Each holder has the gradient of its own query heads only, so they are added up.
struct SharedRows {
  TensorView gradient;  // [local rows, columns]
  Range rows;           // which rows of the global parameter these are
  std::int64_t num_global_rows;
};

struct GradientBucket {
  TensorView gradients;  // one contiguous piece of the flat gradient buffer
  std::vector<SharedRows> shared;
};

class GradientReducer {
 public:
  /// A step has `num_micro_batches`. `device` and `mesh` outlive the reducer.
  GradientReducer(Device& device, const ProcessMesh& mesh, std::vector<GradientBucket> buckets,
                  std::int64_t num_micro_batches);

  /// A micro-batch's gradient has been added to `bucket`. The last one of a step starts its sum.
  void ready(std::size_t bucket);
  /// Ends a step: afterwards the compute stream sees every bucket added up over all ranks.
  void finish();

 private:
  void add_shared_rows(const SharedRows& shared);

  Device& device_;
  const ProcessMesh& mesh_;
  std::vector<GradientBucket> buckets_;
  std::int64_t num_micro_batches_;
  std::vector<std::int64_t> num_added_;  // [bucket]: micro-batches of this step so far
  Tensor scratch_;                       // the largest parameter with shared rows, whole
};

}  // namespace redspine
