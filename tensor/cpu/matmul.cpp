#include <cblas-openblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tensor/cpu/column_sums.h"
#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/gelu.h"
#include "tensor/cpu/partition.h"
#include "tensor/error.h"

namespace redspine {
namespace {

blasint blas_size(std::int64_t size) {
  if (size > std::numeric_limits<blasint>::max()) {
    throw Error(fmt::format("Matmul: a dim of {} is beyond the BLAS library's limit of {}", size,
                            std::numeric_limits<blasint>::max()));
  }
  return static_cast<blasint>(size);
}

CBLAS_TRANSPOSE blas_transpose(Transpose transpose) {
  return transpose == Transpose::yes ? CblasTrans : CblasNoTrans;
}

struct Operand {
  ConstTensorView view;
  Transpose transpose = Transpose::no;

  std::int64_t rows() const { return transpose == Transpose::yes ? view.cols() : view.rows(); }
};

// out = A B + beta * out; out is not read where beta is 0.
void multiply(TensorView out, const Operand& a, const Operand& b, float beta) {
  const std::int64_t m = out.rows();
  const std::int64_t n = out.cols();
  const std::int64_t k = b.rows();
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0.0F) std::fill_n(out.data<float>(), m * n, 0.0F);
    return;
  }
  cblas_sgemm(CblasRowMajor, blas_transpose(a.transpose), blas_transpose(b.transpose), blas_size(m),
              blas_size(n), blas_size(k), 1.0F, a.view.data<float>(), blas_size(a.view.cols()),
              b.view.data<float>(), blas_size(b.view.cols()), beta, out.data<float>(),
              blas_size(n));
}

void add_bias(TensorView x, ConstTensorView bias_view) {
  if (bias_view.count() == 0) return;
  const std::int64_t cols = x.cols();
  float* values = x.data<float>();
  const float* bias = bias_view.data<float>();
  for_each_row(x.rows(), cols, [=](std::int64_t row) {
    float* x_row = values + row * cols;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) x_row[c] += bias[c];
  });
}

template <class Kind>
void apply_gelu(TensorView out_view, ConstTensorView x_view) {
  float* out = out_view.data<float>();
  const float* x = x_view.data<float>();
  for_each_block(x_view.count(), [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) out[i] = Kind::value(x[i]);
  });
}

template <class Kind>
void multiply_by_slope(TensorView dx_view, ConstTensorView x_view) {
  float* dx = dx_view.data<float>();
  const float* x = x_view.data<float>();
  for_each_block(x_view.count(), [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) dx[i] *= Kind::slope(x[i]);
  });
}

}  // namespace

void CpuKernels::run(const Matmul& op) const {
  multiply(op.out, {op.a}, {op.b, op.transpose_b}, 0.0F);
  add_bias(op.out, op.bias);
}

void CpuKernels::run(const MatmulGelu& op) const {
  multiply(op.x, {op.a}, {op.b, Transpose::yes}, 0.0F);
  add_bias(op.x, op.bias);
  op.kind == GeluKind::tanh ? apply_gelu<GeluTanh>(op.out, op.x)
                            : apply_gelu<GeluExact>(op.out, op.x);
}

void CpuKernels::run(const MatmulGeluBackward& op) const {
  multiply(op.dx, {op.a}, {op.b}, 0.0F);
  op.kind == GeluKind::tanh ? multiply_by_slope<GeluTanh>(op.dx, op.x)
                            : multiply_by_slope<GeluExact>(op.dx, op.x);
}

void CpuKernels::run(const WeightGradient& op) const {
  multiply(op.dweight, {op.dy, Transpose::yes}, {op.x}, 1.0F);
  if (op.dbias.count() != 0) add_columns(op.dbias, op.dy);
}

}  // namespace redspine
