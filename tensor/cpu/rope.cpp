#include <cstdint>

#include "tensor/cpu/cpu_kernels.h"

namespace redspine {

void CpuKernels::run(const Rope& op) const {
  const std::int64_t half = op.cos.dim(1);
  const std::int64_t head_size = 2 * half;
  const std::int64_t length = op.x.dim(1);
  const std::int64_t num_rows = op.x.rows();
  const std::int64_t row_size = op.x.cols();
  const float sign = op.direction == RopeDirection::forward ? 1.0F : -1.0F;
  auto* x = op.x.data<float>();
  const auto* all_cos = op.cos.data<float>();
  const auto* all_sin = op.sin.data<float>();
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const std::int64_t t = row % length;
    const float* cos = all_cos + t * half;
    const float* sin = all_sin + t * half;
    for (std::int64_t head = 0; head < op.num_rotated_heads; ++head) {
      float* low = x + row * row_size + head * head_size;
      float* high = low + half;
#pragma omp simd
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a * cos[i] - b * sign * sin[i];
        high[i] = b * cos[i] + a * sign * sin[i];
      }
    }
  }
}

}  // namespace redspine
