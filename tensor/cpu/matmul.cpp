#include "tensor/cpu/column_sums.h"
#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/gelu.h"
#include "tensor/cpu/gemm.h"

namespace redspine {
namespace {

GemmOperand rows_of(ConstTensorView view) { return {view.data<float>(), view.cols(), 1}; }
GemmOperand columns_of(ConstTensorView view) { return {view.data<float>(), 1, view.cols()}; }

// out = A B, where b gives the columns of B.
Gemm product(TensorView out, ConstTensorView a, GemmOperand b) {
  return {.out = out.data<float>(),
          .out_stride = out.cols(),
          .m = out.rows(),
          .n = out.cols(),
          .k = a.cols(),
          .a = rows_of(a),
          .b = b};
}

const float* data_or_null(ConstTensorView view) {
  return view.count() == 0 ? nullptr : view.data<float>();
}

// out = gelu(x), where x is the product.
template <class Kind>
class GeluEpilogue final : public GemmEpilogue {
 public:
  GeluEpilogue(TensorView out, TensorView x)
      : out_(out.data<float>()), x_(x.data<float>()), stride_(x.cols()) {}

  void finish(const GemmTile& tile) const override {
    for (std::int64_t r = 0; r < tile.num_rows; ++r) {
      const std::int64_t begin = (tile.row + r) * stride_ + tile.col;
      float* out = out_ + begin;
      const float* x = x_ + begin;
#pragma omp simd
      for (std::int64_t c = 0; c < tile.num_cols; ++c) out[c] = Kind::value(x[c]);
    }
  }

 private:
  float* out_;
  const float* x_;
  std::int64_t stride_;
};

// dx *= gelu'(x), where dx is the product.
template <class Kind>
class GeluBackwardEpilogue final : public GemmEpilogue {
 public:
  GeluBackwardEpilogue(TensorView dx, ConstTensorView x)
      : dx_(dx.data<float>()), x_(x.data<float>()), stride_(dx.cols()) {}

  void finish(const GemmTile& tile) const override {
    for (std::int64_t r = 0; r < tile.num_rows; ++r) {
      const std::int64_t begin = (tile.row + r) * stride_ + tile.col;
      float* dx = dx_ + begin;
      const float* x = x_ + begin;
#pragma omp simd
      for (std::int64_t c = 0; c < tile.num_cols; ++c) dx[c] *= Kind::slope(x[c]);
    }
  }

 private:
  float* dx_;
  const float* x_;
  std::int64_t stride_;
};

template <class Kind>
void multiply_gelu(const MatmulGelu& op) {
  const GeluEpilogue<Kind> epilogue(op.out, op.x);
  Gemm gemm = product(op.x, op.a, rows_of(op.b));
  gemm.bias = data_or_null(op.bias);
  gemm.epilogue = &epilogue;
  multiply(gemm);
}

template <class Kind>
void multiply_gelu_backward(const MatmulGeluBackward& op) {
  const GeluBackwardEpilogue<Kind> epilogue(op.dx, op.x);
  Gemm gemm = product(op.dx, op.a, columns_of(op.b));
  gemm.epilogue = &epilogue;
  multiply(gemm);
}

}  // namespace

void CpuKernels::run(const Matmul& op) const {
  Gemm gemm =
      product(op.out, op.a, op.transpose_b == Transpose::yes ? rows_of(op.b) : columns_of(op.b));
  gemm.m = op.a.rows();
  gemm.bias = data_or_null(op.bias);
  gemm.order = op.order;
  multiply(gemm);
}

void CpuKernels::run(const AddBias& op) const {
  const std::int64_t cols = op.x.cols();
  float* x = op.x.data<float>();
  const float* bias = op.bias.data<float>();
  for_each_row(op.x.rows(), cols, [=](std::int64_t row) {
    float* x_row = x + row * cols;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) x_row[c] += bias[c];
  });
}

void CpuKernels::run(const Accumulate& op) const {
  float* sum = op.sum.data<float>();
  const float* x = op.x.data<float>();
  for_each_block(op.sum.count(), [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) sum[i] += x[i];
  });
}

void CpuKernels::run(const MatmulGelu& op) const {
  with_gelu(op.kind, [&]<class Kind>() { multiply_gelu<Kind>(op); });
}

void CpuKernels::run(const MatmulGeluBackward& op) const {
  with_gelu(op.kind, [&]<class Kind>() { multiply_gelu_backward<Kind>(op); });
}

void CpuKernels::run(const WeightGradient& op) const {
  const std::int64_t num_rows = op.dy.rows();
  const std::int64_t sample_rows = op.sample_rows == 0 ? num_rows : op.sample_rows;
  Gemm gemm{.out = op.dweight.data<float>(),
            .out_stride = op.dweight.cols(),
            .m = op.dweight.rows(),
            .n = op.dweight.cols(),
            .k = num_rows,
            .a = columns_of(op.dy),
            .b = columns_of(op.x),
            .update = op.update};
  // One sum, whose blocks end with the samples.
  InnerOrder samples{.parts = {}, .num_sums = 1, .depth = 1};
  if (sample_rows < num_rows) {
    for (std::int64_t row = 0; row < num_rows; row += sample_rows) {
      samples.parts.push_back({row, row + sample_rows, row + sample_rows == num_rows, 0});
    }
    gemm.order = &samples;
  }
  multiply(gemm);
  if (op.dbias.count() != 0) add_columns(op.dbias, op.dy, sample_rows);
}

}  // namespace redspine
