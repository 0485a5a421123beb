// Collectives on host memory: what those on device memory come to where MPI or shared memory
// carries them. Calls are collective over the group, by one thread at a time, and return when their
// result is there. `values` have one dim and are not empty; shares are ranges of them, [rank], each
// beginning where the one before ends, which together are all of them. Everything is in place.
#pragma once

#include <span>

#include "parallel/group/process_group.h"
#include "parallel/partition.h"
#include "parallel/sum_tree.h"
#include "tensor/view.h"

namespace redspine {

class HostCollectives {
 public:
  HostCollectives() = default;
  HostCollectives(const HostCollectives&) = delete;
  HostCollectives& operator=(const HostCollectives&) = delete;
  virtual ~HostCollectives() = default;

  /// bf16 is added up in f32 and rounded once, here and in reduce_scatter.
  virtual void all_reduce(TensorView values, ReduceOp op) = 0;
  /// As Communicator's of this name.
  virtual void all_reduce_in_order(TensorView out, std::span<const ConstTensorView> summands,
                                   const SumOrder& order) = 0;
  /// Afterwards this rank's share is reduced, and the others are unspecified.
  virtual void reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op) = 0;
  virtual void reduce_scatter_in_order(TensorView out, std::span<const ConstTensorView> summands,
                                       std::span<const Range> shares, const SumOrder& order) = 0;
  virtual void all_gather(TensorView values, std::span<const Range> shares) = 0;
  virtual void broadcast(TensorView values, int root) = 0;
};

}  // namespace redspine
