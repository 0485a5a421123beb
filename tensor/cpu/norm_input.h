// The addition of a branch to the residual stream, a row at a time, in front of a norm. Internal to
// tensor/cpu; owns nothing.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace redspine {

/// Rows that are read as they are.
class Rows {
 public:
  explicit Rows(ConstTensorView x) : x_(x.data<float>()), cols_(x.cols()) {}

  const float* row(std::int64_t r) const { return x_ + r * cols_; }

 private:
  const float* x_;
  std::int64_t cols_;
};

/// Rows of sum = residual + branch, each written when it is asked for.
class SummedRows {
 public:
  SummedRows(TensorView sum, ConstTensorView residual, ConstTensorView branch)
      : sum_(sum.data<float>()),
        residual_(residual.data<float>()),
        branch_(branch.data<float>()),
        cols_(sum.cols()) {}

  const float* row(std::int64_t r) const {
    float* sum = sum_ + r * cols_;
    const float* residual = residual_ + r * cols_;
    const float* branch = branch_ + r * cols_;
#pragma omp simd
    for (std::int64_t c = 0; c < cols_; ++c) sum[c] = residual[c] + branch[c];
    return sum;
  }

 private:
  float* sum_;
  const float* residual_;
  const float* branch_;
  std::int64_t cols_;
};

}  // namespace redspine
