// Collectives on host memory by MPI, and messages between two ranks. MPI chooses the order of
// additions of each operation and length. Calls that differ between the ranks are found by MPI or
// not at all; messages that differ are named by the rank that receives.
#pragma once

#include "parallel/group/host_collectives.h"

namespace redspine {

class MpiCollectives final : public HostCollectives {
 public:
  /// `group` outlives it, and is used for nothing else meanwhile.
  explicit MpiCollectives(const ProcessGroup& group) : group_(group) {}

  void all_reduce(TensorView values, ReduceOp op) override;
  /// Each rank adds up a part of the vector for all, a piece of it at a time.
  void all_reduce_in_order(TensorView out, std::span<const ConstTensorView> summands,
                           const SumOrder& order) override;
  void reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op) override;
  void reduce_scatter_in_order(TensorView out, std::span<const ConstTensorView> summands,
                               std::span<const Range> shares, const SumOrder& order) override;
  void all_gather(TensorView values, std::span<const Range> shares) override;
  void broadcast(TensorView values, int root) override;

  /// A message that is sent and received in pieces has one header, which comes first.
  void send_header(ConstTensorView values, int to);
  /// Error where what comes is no message of as many values of this type.
  void recv_header(ConstTensorView values, int from);
  void send(ConstTensorView piece, int to);
  void recv(TensorView piece, int from);

 private:
  const ProcessGroup& group_;
};

}  // namespace redspine
