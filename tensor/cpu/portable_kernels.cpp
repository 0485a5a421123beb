// The kernels of a portable build: for x86-64-v3, as all of the program is, and for x86-64-v4.

#include "tensor/cpu/kernel_sets.h"

namespace redspine {
namespace avx2 {
std::unique_ptr<const Kernels> make_kernels();
}
namespace avx512 {
std::unique_ptr<const Kernels> make_kernels();
}

std::span<const CpuKernelSet> cpu_kernel_sets() {
  // GCC asks CPUID and, by XGETBV, whether the system saves the registers.
  static const CpuKernelSet kSets[] = {{.name = "avx2",
                                        .runs_here = __builtin_cpu_supports("x86-64-v3") != 0,
                                        .make = avx2::make_kernels},
                                       {.name = "avx512",
                                        .runs_here = __builtin_cpu_supports("x86-64-v4") != 0,
                                        .make = avx512::make_kernels}};
  return kSets;
}

}  // namespace redspine
