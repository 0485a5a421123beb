#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/partition.h"

namespace redspine {

void CpuKernels::run(const Embedding& op) const {
  const std::int64_t cols = op.out.cols();
  const std::int64_t num_rows = op.weight.rows();
  const std::int64_t first_row = op.first_row;
  float* out = op.out.data<float>();
  const float* weight = op.weight.data<float>();
  const std::int32_t* tokens = op.tokens.data<std::int32_t>();
  for_each_row(op.out.rows(), cols, [=](std::int64_t n) {
    const std::int64_t row = tokens[n] - first_row;
    if (row >= 0 && row < num_rows) {
      std::copy_n(weight + row * cols, cols, out + n * cols);
    } else {
      std::fill_n(out + n * cols, cols, 0.0F);
    }
  });
}

// Threads share columns, not tokens: no two of them ever write to the same element.
void CpuKernels::run(const EmbeddingBackward& op) const {
  constexpr std::int64_t kTileCols = 64;
  const std::int64_t cols = op.dout.cols();
  const std::int64_t num_tokens = op.tokens.count();
  const std::int64_t num_rows = op.dweight.rows();
  float* dweight = op.dweight.data<float>();
  const float* dout = op.dout.data<float>();
  const std::int32_t* tokens = op.tokens.data<std::int32_t>();
#pragma omp parallel for schedule(static) if (num_tokens * cols > kBlockElements)
  for (std::int64_t begin = 0; begin < cols; begin += kTileCols) {
    const std::int64_t end = std::min(begin + kTileCols, cols);
    for (std::int64_t n = 0; n < num_tokens; ++n) {
      const std::int64_t row = tokens[n] - op.first_row;
      if (row < 0 || row >= num_rows) continue;
      const float* dout_row = dout + n * cols;
      float* dweight_row = dweight + row * cols;
#pragma omp simd
      for (std::int64_t c = begin; c < end; ++c) dweight_row[c] += dout_row[c];
    }
  }
}

}  // namespace redspine
