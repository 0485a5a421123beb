#include "parallel/mesh/gradient_reducer.h"

#include <algorithm>

#include "parallel/mesh/tensor_parallel.h"
#include "tensor/ops.h"

namespace redspine {

GradientReducer::GradientReducer(Device& device, const ProcessMesh& mesh,
                                 std::vector<GradientBucket> buckets,
                                 std::int64_t num_micro_batches, std::optional<LaneSums> lanes)
    : device_(device),
      mesh_(mesh),
      buckets_(std::move(buckets)),
      num_micro_batches_(num_micro_batches),
      lanes_(std::move(lanes)),
      lane_micro_batches_(num_micro_batches / static_cast<std::int64_t>(lanes_
                                                                            ? lanes_->buffers.size()
                                                                            : std::size_t{1})),
      num_added_(buckets_.size()) {
  std::int64_t largest = 0;
  for (const GradientBucket& bucket : buckets_) {
    for (const SharedRows& shared : bucket.shared) {
      if (shared.rows.size() == shared.num_global_rows) continue;
      largest = std::max(largest, shared.num_global_rows * shared.gradient.cols());
    }
  }
  scratch_ = Tensor(device, DType::f32, {largest});
}

LaneSums LaneSums::of(int num_lanes, const ProcessGroup& data_axis) {
  const SumTree tree(num_lanes);
  const StackSum own = tree.of_leaves(leaves_of(num_lanes, data_axis.size(), data_axis.rank()));
  return {.buffers = own.places(),
          .num_merges = own.num_merges,
          .over_ranks = tree.over_ranks(data_axis.size())};
}

int LaneSums::num_buffers() const { return 1 + *std::ranges::max_element(buffers); }

std::optional<int> GradientReducer::buffer_begun_by(std::int64_t micro_batch) const {
  if (micro_batch % lane_micro_batches_ != 0) return std::nullopt;
  if (!lanes_) return 0;
  return lanes_->buffers[static_cast<std::size_t>(micro_batch / lane_micro_batches_)];
}

void GradientReducer::ready(std::size_t bucket) {
  const GradientBucket& of = buckets_[bucket];
  const std::int64_t num_added = ++num_added_[bucket];
  if (lanes_ && num_added % lane_micro_batches_ == 0) {
    add_lane(of, static_cast<std::size_t>(num_added / lane_micro_batches_ - 1));
  }
  if (num_added < num_micro_batches_) return;
  for (const SharedRows& shared : of.shared) add_shared_rows(shared);
  device_.order(Stream::compute, Stream::gradients);
  add_over_data(of);
}

void GradientReducer::add_over_data(const GradientBucket& bucket) {
  Communicator& data_axis = mesh_.along(Axis::data);
  const TensorView sum = bucket.gradients.front();
  const std::vector<Range>& shares = bucket.shares;
  constexpr Stream kStream = Stream::gradients;
  if (!lanes_) {
    if (shares.empty()) return data_axis.all_reduce(sum, ReduceOp::sum, kStream);
    return data_axis.reduce_scatter(sum, shares, ReduceOp::sum, kStream);
  }
  const SumOrder& order = lanes_->over_ranks;
  const int num_own = order.num_summands[static_cast<std::size_t>(data_axis.rank())];
  const std::vector<ConstTensorView> own(bucket.gradients.begin(),
                                         bucket.gradients.begin() + num_own);
  if (shares.empty()) return data_axis.all_reduce_in_order(sum, own, order, kStream);
  data_axis.reduce_scatter_in_order(sum, own, shares, order, kStream);
}

void GradientReducer::add_lane(const GradientBucket& bucket, std::size_t lane) {
  auto last = static_cast<std::size_t>(lanes_->buffers[lane]);
  for (int merge = 0; merge < lanes_->num_merges[lane]; ++merge, --last) {
    ops::run(device_, Accumulate{.sum = bucket.gradients[last - 1], .x = bucket.gradients[last]});
  }
}

void GradientReducer::finish() {
  device_.order(Stream::gradients, Stream::compute);
  std::fill(num_added_.begin(), num_added_.end(), 0);
}

// Every rank puts its rows at their global place between zeros, so one all-reduce serves any way
// in which the ranks' rows overlap.
void GradientReducer::add_shared_rows(const SharedRows& shared) {
  if (shared.rows.size() == shared.num_global_rows) {
    return all_reduce_in_tensor_region(device_, mesh_, shared.gradient, ReduceOp::sum);
  }
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
