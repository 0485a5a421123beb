#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/parallel_for.h"

namespace redspine {

void CpuKernels::run(const SumOfSquares& op) const {
  for (const ConstTensorView& part : op.parts) {
    const float* x = part.data<float>();
    *op.sum.data<double>() +=
        sum_over_blocks(part.count(), [=](std::int64_t begin, std::int64_t end) {
          const float* block = x + begin;
          const std::int64_t count = end - begin;
          double sum = 0;
#pragma omp simd reduction(+ : sum)
          for (std::int64_t i = 0; i < count; ++i) {
            sum += static_cast<double>(block[i]) * static_cast<double>(block[i]);
          }
          return sum;
        });
  }
}

}  // namespace redspine
