#include <cmath>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/parallel_for.h"

namespace redspine {

// Everything that a step shares is computed in f64 and rounded once.
void CpuKernels::run(const AdamW& op) const {
  float* parameter = op.parameter.data<float>();
  float* exp_avg = op.exp_avg.data<float>();
  float* exp_avg_sq = op.exp_avg_sq.data<float>();
  const float* gradient = op.gradient.data<float>();
  const auto scale = static_cast<float>(op.gradient_scale);
  const auto beta1 = static_cast<float>(op.beta1);
  const auto beta2 = static_cast<float>(op.beta2);
  const auto rest1 = static_cast<float>(1.0 - op.beta1);
  const auto rest2 = static_cast<float>(1.0 - op.beta2);
  const auto step = static_cast<float>(op.learning_rate / op.correction1);
  const auto root_scale = static_cast<float>(1.0 / std::sqrt(op.correction2));
  const auto epsilon = static_cast<float>(op.epsilon);
  auto* working = op.working.count() == 0 ? nullptr : op.working.data<BFloat16>();
  for (const AdamWPart& part : op.parts) {
    const auto decay = static_cast<float>(1.0 - op.learning_rate * part.weight_decay);
    for_each_block(part.count, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = part.begin + begin; i < part.begin + end; ++i) {
        const float g = gradient[i] * scale;
        const float m = beta1 * exp_avg[i] + rest1 * g;
        const float v = beta2 * exp_avg_sq[i] + rest2 * g * g;
        exp_avg[i] = m;
        exp_avg_sq[i] = v;
        parameter[i] = parameter[i] * decay - step * m / (std::sqrt(v) * root_scale + epsilon);
      }
      if (working == nullptr) return;
      for (std::int64_t i = part.begin + begin; i < part.begin + end; ++i) {
        working[i] = BFloat16(parameter[i]);
      }
    });
  }
}

}  // namespace redspine
