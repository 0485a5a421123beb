#include <cmath>
#include <limits>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/parallel_for.h"
#include "tensor/cpu/vector_math.h"

namespace redspine {

// A NaN is passed over here, where it could be lost or kept depending on the order; the sum of
// exponentials turns it into a NaN loss.
void CpuKernels::run(const RowMax& op) const {
  const std::int64_t cols = op.logits.cols();
  float* max = op.max.data<float>();
  const float* logits = op.logits.data<float>();
  for_each_row(op.logits.rows(), cols, [=](std::int64_t row) {
    const float* logits_row = logits + row * cols;
    float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t c = 0; c < cols; ++c) {
      largest = logits_row[c] > largest ? logits_row[c] : largest;
    }
    max[row] = largest;
  });
}

void CpuKernels::run(const CrossEntropySums& op) const {
  const std::int64_t rows = op.logits.rows();
  const std::int64_t cols = op.logits.cols();
  const std::int64_t first_column = op.first_column;
  float* exp_sums = op.sums.data<float>();
  float* target_logits = exp_sums + rows;
  const float* logits = op.logits.data<float>();
  const float* max = op.max.data<float>();
  const std::int32_t* targets = op.targets.data<std::int32_t>();
  for_each_row(rows, cols, [=](std::int64_t row) {
    const float* logits_row = logits + row * cols;
    const float row_max = max[row];
    double sum = 0;  // of f32 sums over tiles, or a vocabulary's worth of additions would round
    constexpr std::int64_t kTile = 256;
    for (std::int64_t begin = 0; begin < cols; begin += kTile) {
      const std::int64_t end = std::min(begin + kTile, cols);
      float tile_sum = 0;
#pragma omp simd reduction(+ : tile_sum)
      for (std::int64_t c = begin; c < end; ++c) tile_sum += vector_exp(logits_row[c] - row_max);
      sum += static_cast<double>(tile_sum);
    }
    exp_sums[row] = static_cast<float>(sum);
    const std::int64_t target = targets[row] - first_column;
    const bool is_here = target >= 0 && target < cols;  // an ignored target of -1 never is
    target_logits[row] = is_here ? logits_row[target] - row_max : 0.0F;
  });
}

void CpuKernels::run(const CrossEntropyLoss& op) const {
  const std::int64_t rows = op.targets.count();
  const float* exp_sums = op.sums.data<float>();
  const float* target_logits = exp_sums + rows;
  const std::int32_t* targets = op.targets.data<std::int32_t>();
  *op.loss.data<double>() += sum_over_blocks(rows, [=](std::int64_t begin, std::int64_t end) {
    double loss = 0;
    for (std::int64_t n = begin; n < end; ++n) {
      if (targets[n] < 0) continue;
      loss += std::log(static_cast<double>(exp_sums[n])) - static_cast<double>(target_logits[n]);
    }
    return loss;
  });
}

void CpuKernels::run(const CrossEntropyBackward& op) const {
  const std::int64_t cols = op.logits.cols();
  const std::int64_t first_column = op.first_column;
  const float scale = op.scale;
  float* logits = op.logits.data<float>();
  const float* max = op.max.data<float>();
  const float* exp_sums = op.sums.data<float>();
  const std::int32_t* targets = op.targets.data<std::int32_t>();
  for_each_row(op.logits.rows(), cols, [=](std::int64_t row) {
    float* logits_row = logits + row * cols;
    if (targets[row] < 0) {
      std::fill_n(logits_row, cols, 0.0F);
      return;
    }
    const float row_max = max[row];
    const float factor = scale / exp_sums[row];
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      logits_row[c] = vector_exp(logits_row[c] - row_max) * factor;
    }
    const std::int64_t target = targets[row] - first_column;
    if (target >= 0 && target < cols) logits_row[target] -= scale;
  });
}

}  // namespace redspine
