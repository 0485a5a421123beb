#include "parallel/mesh/gradient_reducer.h"

#include <algorithm>

#include "parallel/mesh/tensor_parallel.h"

namespace redspine {

GradientReducer::GradientReducer(Device& device, const ProcessMesh& mesh,
                                 std::vector<GradientBucket> buckets,
                                 std::int64_t num_micro_batches)
    : device_(device),
      mesh_(mesh),
      buckets_(std::move(buckets)),
      num_micro_batches_(num_micro_batches),
      num_added_(buckets_.size()) {
  std::int64_t largest = 0;
  for (const GradientBucket& bucket : buckets_) {
    for (const SharedRows& shared : bucket.shared) {
      largest = std::max(largest, shared.num_global_rows * shared.gradient.cols());
    }
  }
  scratch_ = Tensor(device, DType::f32, {largest});
}

void GradientReducer::ready(std::size_t bucket) {
  if (++num_added_[bucket] < num_micro_batches_) return;
  for (const SharedRows& shared : buckets_[bucket].shared) add_shared_rows(shared);
  device_.order(Stream::compute, Stream::gradients);
  mesh_.along(Axis::data).all_reduce(buckets_[bucket].gradients, ReduceOp::sum, Stream::gradients);
}

void GradientReducer::finish() {
  device_.order(Stream::gradients, Stream::compute);
  std::fill(num_added_.begin(), num_added_.end(), 0);
}

// Every rank puts its rows at their global place between zeros, so one all-reduce serves any way
// in which the ranks' rows overlap.
void GradientReducer::add_shared_rows(const SharedRows& shared) {
  const std::int64_t cols = shared.gradient.cols();
  const TensorView global = scratch_.view()
                                .slice(0, shared.num_global_rows * cols)
                                .reshape({shared.num_global_rows, cols});
  const TensorView local = global.slice(shared.rows.begin, shared.rows.size());
  device_.zero(global);
  device_.copy(local, shared.gradient);
  all_reduce_in_tensor_region(device_, mesh_, global, ReduceOp::sum);
  device_.copy(shared.gradient, local);
}

}  // namespace redspine
