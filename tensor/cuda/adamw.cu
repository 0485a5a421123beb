#include <cmath>
#include <span>
#include <vector>

#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/digest.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/parts.h"

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
  float step;
  float root_scale;
  float epsilon;

  template <int width>
  __device__ void apply(std::int64_t i, float decay) const {
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

struct DecayPart {
  std::int64_t begin;
  std::int64_t count;
  float decay;  // what a step leaves of a parameter
};

template <int width>
__global__ void __launch_bounds__(kElementwiseThreads)
    adamw_kernel(AdamWStep step, const __grid_constant__ PartTable<DecayPart> table) {
  const int p = table.part_of(blockIdx.x);
  const DecayPart& part = table.parts[p];
  const std::int64_t end = part.begin + part.count;
  const std::int64_t block = blockIdx.x - table.first_blocks[p];
  const std::int64_t begin = part.begin + (block * kElementwiseThreads + threadIdx.x) * width;
  if (begin + width <= end) {
    step.apply<width>(begin, part.decay);
  } else {
    for (std::int64_t i = begin; i < end; ++i) step.apply<1>(i, part.decay);
  }
}

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
                       .step = static_cast<float>(op.learning_rate / op.correction1),
                       .root_scale = static_cast<float>(1.0 / std::sqrt(op.correction2)),
                       .epsilon = static_cast<float>(op.epsilon)};
  std::vector<DecayPart> parts;
  bool are_aligned = true;
  for (const AdamWPart& part : op.parts) {
    if (part.count == 0) continue;
    are_aligned = are_aligned && part.begin % kFullWidth<float> == 0;
    parts.push_back({.begin = part.begin,
                     .count = part.count,
                     .decay = static_cast<float>(1.0 - op.learning_rate * part.weight_decay)});
  }
  const Access access =
      are_aligned ? access_to(op.parameter, op.exp_avg, op.exp_avg_sq, op.gradient, op.working)
                  : Access::single;
  with_width<float>(access, [&]<int width>() {
    for_each_table(
        std::span<const DecayPart>(parts), std::int64_t{kElementwiseThreads} * width,
        [&](const PartTable<DecayPart>& table, unsigned num_blocks) {
          launch(stream_, {num_blocks, kElementwiseThreads}, adamw_kernel<width>, step, table);
        });
  });
  if (op.digests.count() != 0) write_digests(stream_, scratch_, op);
}

}  // namespace redspine::cuda
