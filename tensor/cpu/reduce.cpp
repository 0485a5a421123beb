#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/partition.h"

namespace redspine {

void CpuKernels::run(const SumOfSquares& op) const {
  const float* x = op.x.data<float>();
  *op.sum.data<double>() +=
      sum_over_blocks(op.x.count(), [=](std::int64_t begin, std::int64_t end) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = begin; i < end; ++i) {
          sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
        }
        return sum;
      });
}

}  // namespace redspine
