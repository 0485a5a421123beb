// How long an operation or a collective takes on a machine, as its description says. Pure.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "parallel/mesh_shape.h"
#include "trainer/plan/machine.h"
#include "trainer/plan/operation_cost.h"
#include "trainer/plan/step_trace.h"

namespace redspine {

class MachineTime {
 public:
  /// Of ranks that fill the machine's nodes in order. `machine` outlives it, and is valid.
  MachineTime(const Machine& machine, const MeshShape& shape);

  /// Throws ConfigError where the machine has no rate from which it follows.
  double seconds(const OperationCost& operation);
  /// Without what other ranks make it wait.
  double seconds(const CollectiveCall& call) const;
  /// Of a sum of a few numbers over all ranks, from host to host.
  double host_sum_seconds() const;

 private:
  // The ranks along an axis, by the nodes that they lie on.
  struct Group {
    int size = 1;
    int per_node = 1;
    int num_nodes = 1;
  };
  Group group_of(const MeshShape& shape, Axis axis) const;
  double rate_of(const OperationCost& operation) const;
  double all_reduce_seconds(const Group& group, double bytes) const;
  double measured_seconds(int size, double bytes) const;

  const Machine& machine_;
  Group world_;
  std::array<Group, kNumAxes> groups_;  // in the order of kAxes
  // What was asked for before: most operations are those of another layer.
  using Size =
      std::tuple<std::string_view, DType, std::int64_t, std::int64_t, std::int64_t, double>;
  std::map<Size, double> known_;
};

}  // namespace redspine
