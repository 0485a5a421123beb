// Do the collectives of a step fit together? Every rank's recorded calls against those of the ranks
// around it, without any of them: whether all make the same calls in the same order on each stream,
// and whether every call is reached. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "parallel/mesh_shape.h"
#include "trainer/plan/step_trace.h"

namespace redspine {

/// What is communicated in a step by one rank.
struct Traffic {
  std::int64_t num_calls = 0;
  std::int64_t bytes = 0;  // of the tensors that calls are given, once each

  bool operator==(const Traffic&) const = default;
};
using AxisTraffic = std::array<Traffic, kNumAxes>;  // in the order of kAxes

/// The events of a whole step that have to do with other ranks or with the order of streams.
StepTrace communication_of(const StepTraces& step);
/// Of one rank's step.
AxisTraffic traffic_of(const StepTraces& step);
AxisTraffic traffic_of(const StepTrace& communication);

/// `of_ranks` is what each rank of `shape` communicates (communication_of). Throws Error with the
/// first call that its peers do not make alike, or with who waits for whom where nothing goes on.
void check_schedule(const MeshShape& shape, const std::vector<StepTrace>& of_ranks);

}  // namespace redspine
