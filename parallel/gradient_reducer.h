// Adds gradients over the data axis, a bucket at a time: a bucket's all-reduce starts as soon as
// the backward pass of its block has ended and runs under that of the blocks before it. The model
// calls ready(), the trainer finish(). Collective: buckets become ready in one order on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/partition.h"
#include "parallel/process_mesh.h"
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
  /// `device` and `mesh` outlive it.
  GradientReducer(Device& device, const ProcessMesh& mesh, std::vector<GradientBucket> buckets);

  /// Bucket `bucket` has its final local gradient: start adding it up.
  void ready(std::size_t bucket);
  /// Afterwards the compute stream sees every bucket added up over all ranks.
  void finish();

 private:
  void add_shared_rows(const SharedRows& shared);

  Device& device_;
  const ProcessMesh& mesh_;
  std::vector<GradientBucket> buckets_;
  Tensor scratch_;  // the largest parameter with shared rows, whole
};

}  // namespace redspine
