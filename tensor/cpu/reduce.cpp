#include <algorithm>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/parallel_for.h"
#include "tensor/exact_sum.h"

namespace redspine {
namespace {

// The squares of a piece of a row, in eight partial sums taken in turn.
double squares_of(const float* x, std::int64_t count) {
  constexpr std::int64_t kPartials = 8;
  double partials[kPartials] = {};
  std::int64_t begin = 0;
  for (; begin + kPartials <= count; begin += kPartials) {
#pragma omp simd
    for (std::int64_t i = 0; i < kPartials; ++i) {
      const auto value = static_cast<double>(x[begin + i]);
      partials[i] += value * value;
    }
  }
  for (std::int64_t i = begin; i < count; ++i) {
    const auto value = static_cast<double>(x[i]);
    partials[i - begin] += value * value;
  }
  return ((partials[0] + partials[4]) + (partials[2] + partials[6])) +
         ((partials[1] + partials[5]) + (partials[3] + partials[7]));
}

}  // namespace

void CpuKernels::run(const SumOfSquares& op) const {
  for (const ConstTensorView& part : op.parts) {
    const float* x = part.data<float>();
    *op.sum.data<double>() +=
        sum_over_blocks(part.count(), [=](std::int64_t begin, std::int64_t end) {
          const float* block = x + begin;
          const std::int64_t count = end - begin;
          double sum = 0;
#pragma omp simd reduction(+ : sum)
          for (std::int64_t i = 0; i < count; ++i) {
            sum += static_cast<double>(block[i]) * static_cast<double>(block[i]);
          }
          return sum;
        });
  }
}

void CpuKernels::run(const ExactSumOfSquares& op) const {
  auto* values = op.sum.data<std::int64_t>();
  ExactSum total(std::span<const std::int64_t, ExactSum::kNumValues>(values, ExactSum::kNumValues));
  for (const SquaresPart& part : op.parts) {
    const float* x = part.x.data<float>();
    const std::int64_t rows = part.x.rows();
    const std::int64_t cols = part.x.cols();
#pragma omp parallel if (rows * cols > kBlockElements)
    {
      ExactSum sum;
#pragma omp for schedule(static) nowait
      for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t begin = 0;
        for (const std::int64_t end : part.col_ends) {
          sum.add(squares_of(x + row * cols + begin, end - begin));
          begin = end;
        }
      }
      sum.normalise();
// Without a name, which would be a symbol that each set of kernels gives.
#pragma omp critical
      total += sum;
    }
    total.normalise();
  }
  std::copy(total.values().begin(), total.values().end(), values);
}

}  // namespace redspine
