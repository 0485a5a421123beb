// Adds gradients over the data axis, a bucket at a time: a bucket's all-reduce, or for a sharded
// optimizer its reduce-scatter, starts as soon as the backward pass of its block has ended for the
// last micro-batch of a step, and runs under that of the blocks before it. The model calls ready(),
// the trainer finish(). Collective: buckets become ready in one order on all ranks.
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
  // One contiguous piece of each flat gradient buffer; the first has the result.
  std::vector<TensorView> gradients;
  std::vector<SharedRows> shared;
  // A sharded optimizer: what each data rank needs of the sum, [data rank]. None: all need all.
  std::vector<Range> shares = {};
};

/// Exact mode: a step's samples are cut into lanes, as many as divide every number of ranks that it
/// may run on. A rank works off its lanes one after another, each in a gradient buffer of its own,
/// and lanes are added up in a tree (parallel/sum_tree.h).
struct LaneSums {
  std::vector<int> buffers;     // [lane of this rank]: where its gradients go
  std::vector<int> num_merges;  // [lane]: afterwards so many times the last two buffers become one
  SumOrder over_ranks;

  /// Of this rank's part of `num_lanes`.
  static LaneSums of(int num_lanes, const ProcessGroup& data_axis);
  int num_buffers() const;
};

class GradientReducer {
 public:
  /// A step has `num_micro_batches`. `device` and `mesh` outlive the reducer.
  GradientReducer(Device& device, const ProcessMesh& mesh, std::vector<GradientBucket> buckets,
                  std::int64_t num_micro_batches, std::optional<LaneSums> lanes = std::nullopt);

  /// Whether a sum of gradients begins with this micro-batch of a step, and in which buffer.
  std::optional<int> buffer_begun_by(std::int64_t micro_batch) const;

  /// A micro-batch's gradient has been added to `bucket`. The last one of a step starts its sum.
  void ready(std::size_t bucket);
  /// Ends a step: afterwards the compute stream sees every bucket added up over all ranks, or this
  /// rank's share of it.
  void finish();

 private:
  void add_over_data(const GradientBucket& bucket);
  void add_shared_rows(const SharedRows& shared);
  void add_lane(const GradientBucket& bucket, std::size_t lane);

  Device& device_;
  const ProcessMesh& mesh_;
  std::vector<GradientBucket> buckets_;
  std::int64_t num_micro_batches_;
  std::optional<LaneSums> lanes_;
  std::int64_t lane_micro_batches_;
  std::vector<std::int64_t> num_added_;  // [bucket]: micro-batches of this step so far
  Tensor scratch_;                       // the largest parameter with shared rows, whole
};

}  // namespace redspine
