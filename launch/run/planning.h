// What the commands that plan share: on what the ranks will compute, and a plan in words.
#pragma once

#include <string>

#include "trainer/plan/run_plan.h"

namespace redspine {

/// The machine's, which must not contradict run.device (ConfigError); without a machine, that of
/// run.device, and where it is auto the CPU, unless bf16 asks for a GPU.
DeviceKind planned_device(const RunConfig& run, const Machine* machine);

/// A table of the classes of memory, a line each.
std::string memory_table(const MemoryPlan& memory, DeviceKind kind, const Machine* machine);
/// What a step communicates and a run saves.
std::string traffic_text(const RunPlan& plan);
/// Where the time of a step goes, and what comes of it.
std::string time_text(const RunTime& time, const Config& config, const Machine& machine);

}  // namespace redspine
