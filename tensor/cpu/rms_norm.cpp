#include <cmath>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/interleaved_sum.h"
#include "tensor/cpu/norm_input.h"
#include "tensor/cpu/parallel_for.h"

namespace redspine {
namespace {

// `x` are the rows of op.x, there already or made as they are asked for.
template <class InputRows>
void normalise(const RmsNorm& op, const InputRows& x) {
  const std::int64_t cols = op.x.cols();
  const float* weight = op.weight.data<float>();
  float* out = op.out.data<float>();
  float* rstd = op.rstd.data<float>();
  const float epsilon = op.epsilon;
  for_each_row(op.x.rows(), cols, [=](std::int64_t row) {
    const float* x_row = x.row(row);
    float* out_row = out + row * cols;
    const float squares =
        interleaved_sum(cols, [=](std::int64_t c) { return x_row[c] * x_row[c]; });
    const float r = 1.0F / std::sqrt(squares / static_cast<float>(cols) + epsilon);
    rstd[row] = r;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) out_row[c] = x_row[c] * r * weight[c];
  });
}

}  // namespace

void CpuKernels::run(const RmsNorm& op) const { normalise(op, Rows(op.x)); }

void CpuKernels::run(const AddRmsNorm& op) const {
  normalise(
      RmsNorm{
          .out = op.out, .rstd = op.rstd, .x = op.sum, .weight = op.weight, .epsilon = op.epsilon},
      SummedRows(op.sum, op.residual, op.branch));
}

void CpuKernels::run(const RmsNormBackward& op) const {
  const std::int64_t cols = op.x.cols();
  const float* dout = op.dout.data<float>();
  const float* x = op.x.data<float>();
  const float* rstd = op.rstd.data<float>();
  const float* weights = op.weight.data<float>();
  float* dx = op.dx.data<float>();

  const auto row_backward = [=](std::int64_t row, float* dweight) {
    const float* weight = weights;
    const float* dout_row = dout + row * cols;
    const float* x_row = x + row * cols;
    float* dx_row = dx + row * cols;
    const float r = rstd[row];
    const auto dout_n = [=](std::int64_t c) { return dout_row[c] * (x_row[c] * r); };
    const float sum_gn =
        interleaved_sum(cols, [=](std::int64_t c) { return dout_n(c) * weight[c]; });
    const float mean_gn = sum_gn / static_cast<float>(cols);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) dweight[c] += dout_n(c);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      dx_row[c] += r * (dout_row[c] * weight[c] - x_row[c] * r * mean_gn);
    }
  };

  add_column_sums(op.dweight.data<float>(), op.x.rows(), cols, sample_rows_of(op.x),
                  [=](std::int64_t begin, std::int64_t end, float* dweight) {
                    for (std::int64_t row = begin; row < end; ++row) row_backward(row, dweight);
                  });
}

}  // namespace redspine
