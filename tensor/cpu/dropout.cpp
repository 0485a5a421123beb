#include "tensor/cpu/dropout.h"

#include <algorithm>

#include "tensor/cpu/cpu_kernels.h"

namespace redspine {
namespace {

// A multiple of 4 that divides 2^34, so that no block's counters cross from one high word to the
// next.
constexpr std::int64_t kBlock = 1024;

}  // namespace

void DropoutMask::fill(float* factors, std::int64_t num_counters, PhiloxCounter first) const {
  // A copy, which the compiler need not suspect of being written through `factors`.
  const DropoutRule rule = rule_;
#pragma omp simd
  for (std::int64_t i = 0; i < num_counters; ++i) {
    const PhiloxCounter bits = philox4x32(
        rule.key, {first[0] + static_cast<std::uint32_t>(i), first[1], first[2], first[3]});
    factors[4 * i] = rule.factor(bits[0]);
    factors[4 * i + 1] = rule.factor(bits[1]);
    factors[4 * i + 2] = rule.factor(bits[2]);
    factors[4 * i + 3] = rule.factor(bits[3]);
  }
}

void CpuKernels::run(const Dropout& op) const {
  const DropoutMask mask(op.dropout);
  const std::int64_t num_samples = op.x.dim(0);
  const std::int64_t sample_size = op.x.dim(1) * op.x.dim(2);
  const auto* x = op.x.data<float>();
  auto* out = op.out.data<float>();
  if (!mask.active()) {
    if (out != x) std::copy_n(x, op.x.count(), out);
    return;
  }
  const auto* samples = op.dropout.samples_B.data<std::int64_t>();
  // Blocks are of a sample, whose first elements here may lie in the midst of one.
  const std::int64_t first = op.first_position * op.x.dim(2);
  const std::int64_t end = first + sample_size;
  const std::int64_t first_block = first / kBlock;
  const std::int64_t num_blocks = (end + kBlock - 1) / kBlock - first_block;
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t b = 0; b < num_samples; ++b) {
    for (std::int64_t block = 0; block < num_blocks; ++block) {
      const std::int64_t block_begin = (first_block + block) * kBlock;
      const std::int64_t begin = std::max(block_begin, first);
      const std::int64_t count = std::min(block_begin + kBlock, end) - begin;
      const std::int64_t skipped = begin % 4;
      alignas(64) float factors[kBlock];
      mask.fill(factors, (skipped + count + 3) / 4, element_counter(samples[b], begin));
      const float* from = x + b * sample_size + (begin - first);
      float* to = out + b * sample_size + (begin - first);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * factors[skipped + i];
    }
  }
}

}  // namespace redspine
