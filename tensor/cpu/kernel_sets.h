// The compilations of the CPU's kernels that are in this build, and the choice among them. All are
// of the same sources; they differ in the instruction set that the compiler was given. Internal to
// tensor/cpu; local.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tensor/kernels.h"

namespace redspine {

struct CpuKernelSet {
  const char* name;
  bool runs_here;  // whether this machine's processor and system have its instruction set
  std::unique_ptr<const Kernels> (*make)();
};

/// From the plainest to the fastest; whoever runs one runs those before it, too. The build chooses
/// what defines it: native_kernels.cpp, or portable_kernels.cpp with REDSPINE_PORTABLE.
std::span<const CpuKernelSet> cpu_kernel_sets();

/// The set of this name, or the fastest that runs here where `name` is empty. Throws ConfigError
/// (REDSPINE_CPU_KERNELS) where there is no such set or it does not run here.
const CpuKernelSet& choose_kernel_set(std::span<const CpuKernelSet> sets, const std::string& name);

/// The plainest of the sets that are named, one by each rank: what all of them run. Throws
/// ConfigError (REDSPINE_CPU_KERNELS) where one is not among `sets`.
const CpuKernelSet& common_kernel_set(std::span<const CpuKernelSet> sets,
                                      std::span<const std::string> names);

}  // namespace redspine
