// Collectives on device memory along one axis of the mesh, and messages between two of its ranks. A
// call is enqueued on a stream and runs in that stream's order; use Device::order before reading
// the result elsewhere. Every rank of the axis makes the same collective calls, with the same
// arguments, in the same order on each stream. Tensors are worked on in place, and no memory of
// their size is taken besides.
//
// A group of one gets a communicator whose collectives do nothing, so no caller branches on the
// degree.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "parallel/config.h"
#include "parallel/group/process_group.h"
#include "parallel/partition.h"
#include "parallel/sum_tree.h"
#include "tensor/device.h"

namespace redspine {

class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Afterwards every rank has the same bits. bf16 is added up in f32 on the way through host
  /// memory, and as NCCL does it between GPUs.
  virtual void all_reduce(TensorView values, ReduceOp op, Stream stream) = 0;

  /// out = the sum of what all ranks give, in one order whatever carries it, so that every rank has
  /// the same bits as any other way to cut the sum by that order. `summands` are this rank's, each
  /// of as many f32 as `out`, which may be the first of them. Host memory alone.
  void all_reduce_in_order(TensorView out, std::vector<ConstTensorView> summands,
                           const SumOrder& order, Stream stream);

  /// Shares are ranges of the outermost dim, [rank], any of which may be empty: each begins where
  /// the one before ends, and together they are all of `values`. Without shares each rank has its
  /// partition() of the outermost dim. Error where shares are not such ranges.
  ///
  /// Reduce-scatter: afterwards this rank's share is reduced over all ranks; what the others hold
  /// is unspecified. The share has the bits that all_reduce gives it where ranks are added up in
  /// one order: between the ranks of a host through its memory. MPI and NCCL choose an order for
  /// each of their operations.
  void reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op, Stream stream);
  void reduce_scatter(TensorView values, ReduceOp op, Stream stream);
  /// The first half of all_reduce_in_order: of `out`, this rank's share has its bits, and what the
  /// rest holds is unspecified.
  void reduce_scatter_in_order(TensorView out, std::vector<ConstTensorView> summands,
                               std::span<const Range> shares, const SumOrder& order, Stream stream);
  /// All-gather: afterwards every rank has the share of each rank at its place.
  void all_gather(TensorView values, std::span<const Range> shares, Stream stream);
  void all_gather(TensorView values, Stream stream);

  /// Afterwards every rank has what `root` has.
  void broadcast(TensorView values, int root, Stream stream);

  /// From one rank to another, which calls recv with as many values of the same type; messages
  /// between two ranks arrive in the order of the calls on the stream. A send may wait for its
  /// recv, so ranks that exchange messages must not both send first on one stream. The first call
  /// on a stream is one that all ranks of the group make, whichever calls they are. Error where the
  /// other rank is this one, or none of the group.
  void send(ConstTensorView values, int to, Stream stream);
  void recv(TensorView values, int from, Stream stream);

  /// The calls from here on belong to this training step: what a failure names.
  virtual void begin_step(std::int64_t step) = 0;

 private:
  // What the calls of the same names come to, once their arguments are checked: `values` have one
  // dim and are not empty, and shares are of their elements.
  virtual void enqueue_reduce_scatter(TensorView values, std::vector<Range> shares, ReduceOp op,
                                      Stream stream) = 0;
  virtual void enqueue_all_reduce_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                           const SumOrder& order, Stream stream) = 0;
  virtual void enqueue_reduce_scatter_in_order(TensorView out,
                                               std::vector<ConstTensorView> summands,
                                               std::vector<Range> shares, const SumOrder& order,
                                               Stream stream) = 0;
  virtual void enqueue_all_gather(TensorView values, std::vector<Range> shares, Stream stream) = 0;
  virtual void enqueue_broadcast(TensorView values, int root, Stream stream) = 0;
  virtual void enqueue_send(ConstTensorView values, int to, Stream stream) = 0;
  virtual void enqueue_recv(TensorView values, int from, Stream stream) = 0;
};

/// Waits for all that every stream was given, as a communicator does that ends: none of it may
/// outlive what it uses. A failure is reported where the stream's result is waited for.
void finish_streams(Device& device) noexcept;

}  // namespace redspine
