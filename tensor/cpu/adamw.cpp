#include <cmath>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/digest_run.h"
#include "tensor/cpu/parallel_for.h"

namespace redspine {
namespace {

// Elements that are digested right after their update: while they are in registers' reach, and
// beside the loads of the next ones, for which the update waits.
constexpr std::int64_t kPieceElements = 128;
static_assert(kPieceElements % DigestRun::kElementsAtOnce == 0);

// Everything that a step shares is computed in f64 and rounded once.
struct AdamWStep {
  explicit AdamWStep(const AdamW& op)
      : parameter(op.parameter.data<float>()),
        exp_avg(op.exp_avg.data<float>()),
        exp_avg_sq(op.exp_avg_sq.data<float>()),
        gradient(op.gradient.data<float>()),
        scale(static_cast<float>(op.gradient_scale)),
        beta1(static_cast<float>(op.beta1)),
        beta2(static_cast<float>(op.beta2)),
        rest1(static_cast<float>(1.0 - op.beta1)),
        rest2(static_cast<float>(1.0 - op.beta2)),
        step(static_cast<float>(op.learning_rate / op.correction1)),
        root_scale(static_cast<float>(1.0 / std::sqrt(op.correction2))),
        epsilon(static_cast<float>(op.epsilon)) {}

  [[gnu::always_inline]] void update(std::int64_t begin, std::int64_t end, float decay) const {
    const AdamWStep s = *this;  // so that no store to the buffers may change it
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = s.gradient[i] * s.scale;
      const float m = s.beta1 * s.exp_avg[i] + s.rest1 * g;
      const float v = s.beta2 * s.exp_avg_sq[i] + s.rest2 * g * g;
      s.exp_avg[i] = m;
      s.exp_avg_sq[i] = v;
      s.parameter[i] =
          s.parameter[i] * decay - s.step * m / (std::sqrt(v) * s.root_scale + s.epsilon);
    }
  }

  // The same, and the digest of the new parameters, whose first one's index is `index`.
  Digest update_and_digest(std::int64_t begin, std::int64_t end, float decay, const DigestKey& key,
                           std::int64_t index) const {
    const AdamWStep s = *this;
    DigestRun run(key, index);
    for (; begin + kPieceElements <= end; begin += kPieceElements) {
      s.update(begin, begin + kPieceElements, decay);
      run.add(s.parameter + begin, kPieceElements);
    }
    s.update(begin, end, decay);
    run.add(s.parameter + begin, end - begin);
    return run.sum();
  }

  float* parameter;
  float* exp_avg;
  float* exp_avg_sq;
  const float* gradient;
  float scale;
  float beta1;
  float beta2;
  float rest1;
  float rest2;
  float step;
  float root_scale;
  float epsilon;
};

}  // namespace

void CpuKernels::run(const AdamW& op) const {
  const AdamWStep step(op);
  auto* working = op.working.count() == 0 ? nullptr : op.working.data<BFloat16>();
  auto* digests = op.digests.count() == 0 ? nullptr : op.digests.data<std::int64_t>();
  for (const AdamWPart& part : op.parts) {
    const auto decay = static_cast<float>(1.0 - op.learning_rate * part.weight_decay);
    Digest digest;
    for_each_block(part.count, [&](std::int64_t begin, std::int64_t end) {
      if (digests == nullptr) {
        step.update(part.begin + begin, part.begin + end, decay);
      } else {
        Digest of_block;
        for_each_run(part.place, begin, end,
                     [&](std::int64_t run_begin, std::int64_t run_end, std::int64_t index) {
                       of_block +=
                           step.update_and_digest(part.begin + run_begin, part.begin + run_end,
                                                  decay, part.place.key, index);
                     });
        // Integers: the sum is the same in whatever order the blocks end.
#pragma omp atomic
        digest.low += of_block.low;
#pragma omp atomic
        digest.high += of_block.high;
      }
      if (working == nullptr) return;
      for (std::int64_t i = part.begin + begin; i < part.begin + end; ++i) {
        working[i] = BFloat16(step.parameter[i]);
      }
    });
    if (digests == nullptr) continue;
    *digests++ = static_cast<std::int64_t>(digest.low);
    *digests++ = static_cast<std::int64_t>(digest.high);
  }
}

}  // namespace redspine
