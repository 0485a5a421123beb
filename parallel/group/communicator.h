// CollectiveBackend on device memory along one axis of the mesh. A call is enqueued on a stream and
// runs in that stream's order; use Device::order before reading the result elsewhere. Every rank of
// the axis makes the same calls with the same counts in the same order on each stream.
//
// A group of one gets a communicator whose calls do nothing, so no caller branches on the degree.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "parallel/config.h"
#include "parallel/group/process_group.h"
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

  /// In place; afterwards every rank has the same bits. bf16 is added up in f32 on the way through
  /// host memory, and as NCCL does it between GPUs.
  virtual void all_reduce(TensorView values, ReduceOp op, Stream stream) = 0;

  /// The calls from here on belong to this training step: what a failure names.
  virtual void begin_step(std::int64_t step) = 0;
};

/// Waits for all that every stream was given, as a communicator does that ends: none of it may
/// outlive what it uses. A failure is reported where the stream's result is waited for.
void finish_streams(Device& device) noexcept;

}  // namespace redspine
