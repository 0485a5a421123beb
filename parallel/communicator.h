// Collectives on device memory along one axis of the mesh. A call is enqueued on a stream and runs
// in that stream's order; use Device::order before reading the result elsewhere. Every rank of the
// axis makes the same calls with the same counts in the same order on each stream.
//
// A group of one gets a communicator whose calls do nothing, so no caller branches on the degree.
#pragma once

#include <memory>

#include "parallel/rank_group.h"
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

  /// In place; afterwards every rank has the same bits.
  virtual void all_reduce(TensorView values, ReduceOp op, Stream stream) = 0;
};

/// The communicator that fits the device and the group: nothing for one rank, else MPI.
/// Collective over the group. `device` outlives it.
std::unique_ptr<Communicator> make_communicator(const RankGroup& group, Device& device);

}  // namespace redspine
