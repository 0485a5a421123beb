#include <algorithm>
#include <limits>
#include <vector>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/interleaved_sum.h"
#include "tensor/cpu/parallel_for.h"
#include "tensor/cpu/vector_math.h"
#include "tensor/exact_sum.h"
#include "tensor/portable_math.h"

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

namespace {

// The sum of exp(x - max). In tiles, or a vocabulary's worth of additions would round.
float sum_of_exp(const float* x, std::int64_t count, float max) {
  constexpr std::int64_t kTile = 256;
  alignas(64) float terms[kTile];
  double sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += kTile) {
    const std::int64_t size = std::min(kTile, count - begin);
    const float* tile = x + begin;
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) terms[i] = vector_exp(tile[i] - max);
    const float* of_tile = terms;
    sum += static_cast<double>(interleaved_sum(size, [=](std::int64_t i) { return of_tile[i]; }));
  }
  return static_cast<float>(sum);
}

// The same over the leaves of an order; writes what is left on the stack, `stride` apart.
void sum_exp_in_order(const InnerOrder& order, const float* x, float max, float* sums,
                      std::int64_t stride) {
  std::vector<float> stack;
  for (const InnerPart& part : order.parts) {
    stack.push_back(sum_of_exp(x + part.begin, part.end - part.begin, max));
    for (int merge = 0; merge < part.num_merges; ++merge) {
      const float top = stack.back();
      stack.pop_back();
      stack.back() += top;
    }
  }
  for (std::size_t i = 0; i < stack.size(); ++i) {
    sums[static_cast<std::int64_t>(i) * stride] = stack[i];
  }
}

double loss_of(float exp_sum, float target_logit) {
  return portable::log(static_cast<double>(exp_sum)) - static_cast<double>(target_logit);
}

}  // namespace

void CpuKernels::run(const CrossEntropySums& op) const {
  const std::int64_t rows = op.logits.rows();
  const std::int64_t cols = op.logits.cols();
  const std::int64_t first_column = op.first_column;
  const InnerOrder* order = op.order;
  float* exp_sums = op.sums.data<float>();
  float* target_logits = exp_sums + rows;
  const float* logits = op.logits.data<float>();
  const float* max = op.max.data<float>();
  const std::int32_t* targets = op.targets.data<std::int32_t>();
  for_each_row(rows, cols, [=](std::int64_t row) {
    const float* logits_row = logits + row * cols;
    if (order == nullptr) {
      exp_sums[row] = sum_of_exp(logits_row, cols, max[row]);
    } else {
      sum_exp_in_order(*order, logits_row, max[row], exp_sums + row, 2 * rows);
    }
    const std::int64_t target = targets[row] - first_column;
    const bool is_here = target >= 0 && target < cols;  // an ignored target of -1 never is
    target_logits[row] = is_here ? logits_row[target] - max[row] : 0.0F;
  });
  // The first sum has the target's logit; it is a summand of one.
  for (int s = 1; order != nullptr && s < order->num_sums; ++s) {
    std::fill_n(target_logits + 2 * rows * s, rows, 0.0F);
  }
}

void CpuKernels::run(const CrossEntropyLoss& op) const {
  const std::int64_t rows = op.targets.count();
  const float* exp_sums = op.sums.data<float>();
  const float* target_logits = exp_sums + rows;
  const std::int32_t* targets = op.targets.data<std::int32_t>();
  if (op.loss.dtype() == DType::i64) {
    auto* values = op.loss.data<std::int64_t>();
    ExactSum loss(
        std::span<const std::int64_t, ExactSum::kNumValues>(values, ExactSum::kNumValues));
    for (std::int64_t n = 0; n < rows; ++n) {
      if (targets[n] >= 0) loss.add(loss_of(exp_sums[n], target_logits[n]));
    }
    loss.normalise();
    std::copy(loss.values().begin(), loss.values().end(), values);
    return;
  }
  *op.loss.data<double>() += sum_over_blocks(rows, [=](std::int64_t begin, std::int64_t end) {
    double loss = 0;
    for (std::int64_t n = begin; n < end; ++n) {
      if (targets[n] >= 0) loss += loss_of(exp_sums[n], target_logits[n]);
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
