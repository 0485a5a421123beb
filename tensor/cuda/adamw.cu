#include <cmath>

#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/elementwise.h"

namespace redspine::cuda {
namespace {

// Everything that a step shares is computed in f64 and rounded once.
struct AdamWStep {
  float* parameter;
  float* exp_avg;
  float* exp_avg_sq;
  const float* gradient;
  BFloat* working;  // null for none
  float scale;
  float beta1;
  float beta2;
  float rest1;
  float rest2;
  float decay;
  float step;
  float root_scale;
  float epsilon;

  template <int width>
  __device__ void apply(std::int64_t i) const {
    Floats<width> p = load<width>(parameter + i);
    Floats<width> m = load<width>(exp_avg + i);
    Floats<width> v = load<width>(exp_avg_sq + i);
    const Floats<width> gradients = load<width>(gradient + i);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const float g = gradients.values[j] * scale;
      m.values[j] = beta1 * m.values[j] + rest1 * g;
      v.values[j] = beta2 * v.values[j] + rest2 * g * g;
      p.values[j] =
          p.values[j] * decay - step * m.values[j] / (sqrtf(v.values[j]) * root_scale + epsilon);
    }
    store(parameter + i, p);
    store(exp_avg + i, m);
    store(exp_avg_sq + i, v);
    if (working != nullptr) store(working + i, p);
  }
};

}  // namespace

void CudaKernels::run(const AdamW& op) const {
  const AdamWStep step{.parameter = elements<float>(op.parameter),
                       .exp_avg = elements<float>(op.exp_avg),
                       .exp_avg_sq = elements<float>(op.exp_avg_sq),
                       .gradient = elements<float>(op.gradient),
                       .working = op.working.count() == 0 ? nullptr : elements<BFloat>(op.working),
                       .scale = static_cast<float>(op.gradient_scale),
                       .beta1 = static_cast<float>(op.beta1),
                       .beta2 = static_cast<float>(op.beta2),
                       .rest1 = static_cast<float>(1.0 - op.beta1),
                       .rest2 = static_cast<float>(1.0 - op.beta2),
                       .decay = static_cast<float>(1.0 - op.learning_rate * op.weight_decay),
                       .step = static_cast<float>(op.learning_rate / op.correction1),
                       .root_scale = static_cast<float>(1.0 / std::sqrt(op.correction2)),
                       .epsilon = static_cast<float>(op.epsilon)};
  for_each_element<float>(
      stream_, step, op.parameter.count(),
      access_to(op.parameter, op.exp_avg, op.exp_avg_sq, op.gradient, op.working));
}

}  // namespace redspine::cuda
