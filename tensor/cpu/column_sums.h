// Bias gradients: the sums of a matrix's columns. Internal to tensor/cpu; local.
#pragma once

#include "tensor/cpu/parallel_for.h"
#include "tensor/view.h"

namespace redspine {

/// sums[c] += the sum over rows of x[r,c], in the order of `add_column_sums`.
inline void add_columns(TensorView sums, ConstTensorView x_view, std::int64_t sample_rows) {
  const std::int64_t cols = x_view.cols();
  const float* x = x_view.data<float>();
  add_column_sums(sums.data<float>(), x_view.rows(), cols, sample_rows,
                  [=](std::int64_t begin, std::int64_t end, float* partial) {
                    for (std::int64_t row = begin; row < end; ++row) {
                      const float* x_row = x + row * cols;
#pragma omp simd
                      for (std::int64_t c = 0; c < cols; ++c) partial[c] += x_row[c];
                    }
                  });
}

}  // namespace redspine
