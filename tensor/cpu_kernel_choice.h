// Which kernels the CPU computes with, where a portable build has them for several instruction
// sets. Local.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tensor/device.h"

namespace redspine {

/// The name of the kernels that this process is to compute with on the CPU: what the environment
/// variable REDSPINE_CPU_KERNELS says, or else the fastest of this build that the processor runs.
/// Throws ConfigError where the build has no such kernels or the processor does not run them.
std::string cpu_kernels();

/// Of the names that the ranks of a job have, the plainest one's: which all of them run. Throws
/// ConfigError where one of them is not in this build.
std::string cpu_kernels_in_common(std::span<const std::string> of_ranks);

/// The name, and those of all kernels in this build. Throws ConfigError as cpu_kernels() does.
std::string cpu_kernels_description();

/// The CPU as a device that computes by the kernels of this name; device.h has it with
/// cpu_kernels().
std::unique_ptr<Device> make_cpu_device(int num_threads, const std::string& kernels);

}  // namespace redspine
