// How long a recorded step takes on a machine: its three streams, as the host gives them out. Pure.
#pragma once

#include "trainer/plan/machine_time.h"
#include "trainer/plan/step_trace.h"

namespace redspine {

/// Seconds of a step of one rank, which add up to seconds().
struct StepTime {
  double products = 0.0;
  double attention = 0.0;
  double memory = 0.0;        // operations that are as fast as memory: norms, activations, loss
  double update = 0.0;        // norm of the gradients and optimizer
  double tensor_waits = 0.0;  // for sums over the tensor axis, beneath which there was no work left
  double data_waits = 0.0;    // the same over the data axis
  double host = 0.0;          // sums from host to host, and what a step takes besides

  double seconds() const {
    return products + attention + memory + update + tensor_waits + data_waits + host;
  }
};

StepTime time_of(const StepTraces& step, const Machine& machine, const MeshShape& shape);

}  // namespace redspine
