#include <cmath>

#include "tensor/cpu/column_sums.h"
#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/interleaved_sum.h"
#include "tensor/cpu/norm_input.h"
#include "tensor/cpu/parallel_for.h"

namespace redspine {
namespace {

struct Moments {
  float mean;
  float rstd;
};

// Two passes over a row that the first one has brought into the cache: the variance of differences
// from the mean does not cancel as mean(x^2) - mean^2 would.
Moments moments_of(const float* x, std::int64_t cols, float epsilon) {
  const auto count = static_cast<float>(cols);
  const float mean = interleaved_sum(cols, [=](std::int64_t c) { return x[c]; }) / count;
  const float squares =
      interleaved_sum(cols, [=](std::int64_t c) { return (x[c] - mean) * (x[c] - mean); });
  return {mean, 1.0F / std::sqrt(squares / count + epsilon)};
}

// `x` are the rows of op.x, there already or made as they are asked for.
template <class InputRows>
void normalise(const LayerNorm& op, const InputRows& x) {
  const std::int64_t cols = op.x.cols();
  const float* weight = op.weight.data<float>();
  const float* bias = op.bias.count() == 0 ? nullptr : op.bias.data<float>();
  float* out = op.out.data<float>();
  float* mean = op.mean.data<float>();
  float* rstd = op.rstd.data<float>();
  const float epsilon = op.epsilon;
  for_each_row(op.x.rows(), cols, [=](std::int64_t row) {
    const float* x_row = x.row(row);
    float* out_row = out + row * cols;
    const Moments m = moments_of(x_row, cols, epsilon);
    mean[row] = m.mean;
    rstd[row] = m.rstd;
    if (bias == nullptr) {
#pragma omp simd
      for (std::int64_t c = 0; c < cols; ++c) out_row[c] = (x_row[c] - m.mean) * m.rstd * weight[c];
      return;
    }
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      out_row[c] = (x_row[c] - m.mean) * m.rstd * weight[c] + bias[c];
    }
  });
}

}  // namespace

void CpuKernels::run(const LayerNorm& op) const { normalise(op, Rows(op.x)); }

void CpuKernels::run(const AddLayerNorm& op) const {
  normalise(LayerNorm{.out = op.out,
                      .mean = op.mean,
                      .rstd = op.rstd,
                      .x = op.sum,
                      .weight = op.weight,
                      .bias = op.bias,
                      .epsilon = op.epsilon},
            SummedRows(op.sum, op.residual, op.branch));
}

void CpuKernels::run(const LayerNormBackward& op) const {
  const std::int64_t cols = op.x.cols();
  const std::int64_t rows = op.x.rows();
  const float* dout = op.dout.data<float>();
  const float* x = op.x.data<float>();
  const float* mean = op.mean.data<float>();
  const float* rstd = op.rstd.data<float>();
  const float* weights = op.weight.data<float>();
  float* dx = op.dx.data<float>();

  const auto row_backward = [=](std::int64_t row, float* dweight) {
    const float* weight = weights;
    const float* dout_row = dout + row * cols;
    const float* x_row = x + row * cols;
    float* dx_row = dx + row * cols;
    const float m = mean[row];
    const float r = rstd[row];
    const auto count = static_cast<float>(cols);
    const auto g = [=](std::int64_t c) { return dout_row[c] * weight[c]; };
    const float mean_g = interleaved_sum(cols, g) / count;
    const float mean_gn =
        interleaved_sum(cols, [=](std::int64_t c) { return g(c) * ((x_row[c] - m) * r); }) / count;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) dweight[c] += dout_row[c] * ((x_row[c] - m) * r);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      const float n = (x_row[c] - m) * r;
      dx_row[c] += r * (g(c) - mean_g - n * mean_gn);
    }
  };

  add_column_sums(op.dweight.data<float>(), rows, cols, sample_rows_of(op.x),
                  [=](std::int64_t begin, std::int64_t end, float* dweight) {
                    for (std::int64_t row = begin; row < end; ++row) row_backward(row, dweight);
                  });
  if (op.dbias.count() != 0) add_columns(op.dbias, op.dout, sample_rows_of(op.x));
}

}  // namespace redspine
