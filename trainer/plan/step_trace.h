// What one rank does in a training step, in the order in which its host gives it out: operations,
// collectives and the order between streams, as the model's own code makes them on a device that
// records (trainer/plan/recording_device.h). Plain values.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "parallel/group/process_group.h"
#include "parallel/mesh_shape.h"
#include "tensor/device.h"
#include "tensor/view.h"
#include "trainer/plan/operation_cost.h"

namespace redspine {

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, broadcast };
const char* name_of(CollectiveKind kind);

/// A collective over the ranks of an axis, as every one of them has to call it.
struct CollectiveCall {
  Axis axis;
  CollectiveKind kind;
  ReduceOp op;
  DType dtype;
  std::int64_t count;         // elements, over all shares
  std::uint64_t shares_hash;  // of those of all ranks, in reduce-scatter and all-gather
  int root = 0;               // of a broadcast
  bool in_order = false;      // exact mode: a sum in an order of its own
  Stream stream;

  std::int64_t bytes() const { return count * static_cast<std::int64_t>(size_of(dtype)); }
  bool operator==(const CollectiveCall&) const = default;
};

/// What comes on `then` waits for what was on `first`.
struct StreamOrder {
  Stream first;
  Stream then;
};

/// The host waits for a stream before it gives out more.
struct HostWait {
  Stream stream;
};

using StepEvent = std::variant<OperationCost, CollectiveCall, StreamOrder, HostWait>;
using StepTrace = std::vector<StepEvent>;

/// A step, cut where its parts are repeated.
struct StepTraces {
  StepTrace first;   // the first micro-batch
  StepTrace middle;  // each that is neither the first nor the last
  StepTrace last;    // the last micro-batch, with the sums of gradients; the first where it is one
  StepTrace update;  // norm of the gradients, and the optimizer
  std::int64_t num_micro_batches = 1;

  /// `visit(trace, times)` for each part, in order.
  template <class Visit>
  void for_each_part(const Visit& visit) const {
    if (num_micro_batches > 1) visit(first, std::int64_t{1});
    if (num_micro_batches > 2) visit(middle, num_micro_batches - 2);
    visit(last, std::int64_t{1});
    visit(update, std::int64_t{1});
  }
};

}  // namespace redspine
