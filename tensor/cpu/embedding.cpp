#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/parallel_for.h"

namespace redspine {

void CpuKernels::run(const Embedding& op) const {
  const std::int64_t cols = op.out.cols();
  const std::int64_t num_rows = op.weight.rows();
  const std::int64_t first_row = op.first_row;
  const std::int64_t length = op.out.dim(1);
  float* out = op.out.data<float>();
  const float* weight = op.weight.data<float>();
  const float* position = op.position.count() == 0 ? nullptr : op.position.data<float>();
  const std::int32_t* tokens = op.tokens.data<std::int32_t>();
  for_each_row(op.out.rows(), cols, [=](std::int64_t n) {
    const std::int64_t row = tokens[n] - first_row;
    float* out_row = out + n * cols;
    if (row >= 0 && row < num_rows) {
      std::copy_n(weight + row * cols, cols, out_row);
    } else {
      std::fill_n(out_row, cols, -0.0F);  // x + -0 is x, also where x is -0
    }
    if (position == nullptr) return;
    const float* position_row = position + n % length * cols;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) out_row[c] += position_row[c];
  });
}

// Threads share columns, not tokens: no two of them ever write to the same element.
void CpuKernels::run(const EmbeddingBackward& op) const {
  constexpr std::int64_t kTileCols = 64;
  const std::int64_t cols = op.dout.cols();
  const std::int64_t num_tokens = op.tokens.count();
  const std::int64_t num_rows = op.dweight.rows();
  const std::int64_t length = op.dout.dim(1);
  float* dposition = op.dposition.count() == 0 ? nullptr : op.dposition.data<float>();
  float* dweight = op.dweight.data<float>();
  const float* dout = op.dout.data<float>();
  const std::int32_t* tokens = op.tokens.data<std::int32_t>();
#pragma omp parallel for schedule(static) if (num_tokens * cols > kBlockElements)
  for (std::int64_t begin = 0; begin < cols; begin += kTileCols) {
    const std::int64_t end = std::min(begin + kTileCols, cols);
    const auto add_row = [=](float* to, const float* from) {
#pragma omp simd
      for (std::int64_t c = begin; c < end; ++c) to[c] += from[c];
    };
    for (std::int64_t n = 0; n < num_tokens; ++n) {
      const float* dout_row = dout + n * cols;
      if (dposition != nullptr) add_row(dposition + n % length * cols, dout_row);
      const std::int64_t row = tokens[n] - op.first_row;
      if (row >= 0 && row < num_rows) add_row(dweight + row * cols, dout_row);
    }
  }
}

}  // namespace redspine
