#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/partition.h"

namespace redspine {

void CpuKernels::run(const Add& op) const {
  float* out = op.out.data<float>();
  const float* x = op.x.data<float>();
  for_each_block(op.out.count(), [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) out[i] += x[i];
  });
}

}  // namespace redspine
