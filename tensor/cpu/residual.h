// Rows of the residual stream, to which a norm adds what is still missing as it comes to them.
// Internal to tensor/cpu; owns nothing.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace redspine {

class ResidualRows {
 public:
  ResidualRows(TensorView x, ConstTensorView residual)
      : x_(x.data<float>()),
        residual_(residual.count() == 0 ? nullptr : residual.data<float>()),
        cols_(x.cols()) {}

  /// Row `r`, after x += residual where there is one. Once a row.
  const float* row(std::int64_t r) const {
    float* x = x_ + r * cols_;
    if (residual_ != nullptr) {
      const float* residual = residual_ + r * cols_;
#pragma omp simd
      for (std::int64_t c = 0; c < cols_; ++c) x[c] += residual[c];
    }
    return x;
  }

 private:
  float* x_;
  const float* residual_;
  std::int64_t cols_;
};

}  // namespace redspine
