// The kernels of a build for the machine that builds: one set, with all of its instructions.

#include "tensor/cpu/kernel_sets.h"

namespace redspine {
namespace native {
std::unique_ptr<const Kernels> make_kernels();
}

std::span<const CpuKernelSet> cpu_kernel_sets() {
  static constexpr CpuKernelSet kSets[] = {
      {.name = "native", .runs_here = true, .make = native::make_kernels}};
  return kSets;
}

}  // namespace redspine
