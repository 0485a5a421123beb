// How much memory a run takes on each rank, known before anything is allocated: model and optimizer
// are made on a device that only counts (trainer/plan/planned_rank.h).
#pragma once

#include <cstdint>
#include <string>

#include "parallel/group/process_group.h"
#include "tensor/device.h"
#include "trainer/config.h"

namespace redspine {

/// Bytes of one rank; of several, each class is that of the rank that has most of it.
struct MemoryPlan {
  std::int64_t parameters = 0;     // f32 values, and what layers read in bf16
  std::int64_t gradients = 0;      // f32
  std::int64_t optimizer = 0;      // both moments, f32
  std::int64_t saved = 0;          // what a micro-batch's forward pass leaves for the backward pass
  std::int64_t scratch = 0;        // gradients inside of layers, tables, the micro-batch itself
  std::int64_t logits = 0;         // of one chunk of rows
  std::int64_t communication = 0;  // where gradients of rows that ranks share are added up
  std::int64_t spot_check = 0;     // a block of another rank, to be computed again
  // Beside what is allocated on the device:
  std::int64_t library = 0;   // workspace of products, and of cuDNN's attention (B h T^2 in bf16)
  std::int64_t snapshot = 0;  // host memory: the copy that is saved in the background

  bool operator==(const MemoryPlan&) const = default;
  std::int64_t activations() const { return saved + scratch + logits + communication; }
  /// What is allocated on the device: to the byte.
  std::int64_t total() const {
    return parameters + gradients + optimizer + activations() + spot_check;
  }
  /// What a device has to have room for. The CPU's memory is the host's.
  std::int64_t on_device(DeviceKind kind) const {
    return total() + library + (kind == DeviceKind::cpu ? snapshot : 0);
  }
};

/// Each class is the larger of both.
MemoryPlan most_of(const MemoryPlan& a, const MemoryPlan& b);

/// What training takes on the rank of `world` that takes most; without what the process and its
/// libraries take whatever they are given to do. `config` is valid for the size of `world`; `kind`
/// is that of the devices, for which layers may choose buffers of different sizes. Collective.
MemoryPlan plan_memory(const Config& config, const ProcessGroup& world, DeviceKind kind);

/// The same of a world of so many ranks that is only thought of. Local.
MemoryPlan plan_memory(const Config& config, int num_ranks, DeviceKind kind);

/// One line, in MiB.
std::string to_string(const MemoryPlan& plan);

}  // namespace redspine
