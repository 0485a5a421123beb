// The kernels of a portable build: for x86-64-v3, as all of the program is, and for x86-64-v4.

#include "tensor/cpu/kernel_sets.h"

namespace redspine {
namespace avx2 {
std::unique_ptr<const Kernels> make_kernels();
}
namespace avx512 {
std::unique_ptr<const Kernels> make_kernels();
}

namespace {

// What x86-64-v4 adds. The builtin asks CPUID and, by XGETBV, whether the system keeps the
// registers.
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

}  // namespace

std::span<const CpuKernelSet> cpu_kernel_sets() {
  static const CpuKernelSet kSets[] = {
      {.name = "avx2", .runs_here = true, .make = avx2::make_kernels},
      {.name = "avx512", .runs_here = has_avx512(), .make = avx512::make_kernels}};
  return kSets;
}

}  // namespace redspine
