// How much memory a run takes on each device, known before anything is allocated: the model and the
// optimizer are made on a device that only counts. Collective over the world.
#pragma once

#include <cstdint>
#include <string>

#include "parallel/group/process_group.h"
#include "tensor/device.h"
#include "trainer/config.h"

namespace redspine {

/// Bytes of one rank; of the rank that takes most.
struct MemoryPlan {
  std::int64_t parameters = 0;   // f32 values, and what layers read in bf16
  std::int64_t gradients = 0;    // f32
  std::int64_t optimizer = 0;    // both moments, f32
  std::int64_t activations = 0;  // of one micro-batch, with everything else

  std::int64_t total() const { return parameters + gradients + optimizer + activations; }
};

/// What training takes; without what libraries keep for themselves (workspaces, contexts).
/// `config` is valid for the size of `world`; `kind` is that of the devices, for which layers may
/// choose buffers of different sizes.
MemoryPlan plan_memory(const Config& config, const ProcessGroup& world, DeviceKind kind);

/// One line, in MiB.
std::string to_string(const MemoryPlan& plan);

}  // namespace redspine
