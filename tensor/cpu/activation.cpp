#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/partition.h"
#include "tensor/cpu/vector_math.h"

namespace redspine {
namespace {

struct GeluTanh {
  // (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)): one exponential, and no cancellation for negative u.
  static constexpr float kTwoRoot = 1.59576912F;  // 2 sqrt(2 / pi)
  static constexpr float kCubic = 0.044715F;

  static float value(float x) { return x * logistic(kTwoRoot * x * (1.0F + kCubic * x * x)).value; }
  static float slope(float x) {
    const Logistic s = logistic(kTwoRoot * x * (1.0F + kCubic * x * x));
    return s.value + x * s.slope * kTwoRoot * (1.0F + 3.0F * kCubic * x * x);
  }
};

struct GeluExact {
  static float value(float x) { return x * standard_normal(x).cumulative; }
  static float slope(float x) {
    const StandardNormal normal = standard_normal(x);
    return normal.cumulative + x * normal.density;
  }
};

template <class Kind>
void gelu(const Gelu& op) {
  float* out = op.out.data<float>();
  const float* x = op.x.data<float>();
  for_each_block(op.x.count(), [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) out[i] = Kind::value(x[i]);
  });
}

template <class Kind>
void gelu_backward(const GeluBackward& op) {
  float* dx = op.dx.data<float>();
  const float* dout = op.dout.data<float>();
  const float* x = op.x.data<float>();
  for_each_block(op.x.count(), [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) dx[i] = dout[i] * Kind::slope(x[i]);
  });
}

}  // namespace

void CpuKernels::run(const Gelu& op) const {
  op.kind == GeluKind::tanh ? gelu<GeluTanh>(op) : gelu<GeluExact>(op);
}

void CpuKernels::run(const GeluBackward& op) const {
  op.kind == GeluKind::tanh ? gelu_backward<GeluTanh>(op) : gelu_backward<GeluExact>(op);
}

void CpuKernels::run(const Swiglu& op) const {
  const std::int64_t cols = op.out.cols();
  float* out = op.out.data<float>();
  const float* gate_up = op.gate_up.data<float>();
  for_each_row(op.out.rows(), cols, [=](std::int64_t row) {
    const float* gate = gate_up + 2 * row * cols;
    const float* up = gate + cols;
    float* out_row = out + row * cols;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) out_row[c] = gate[c] * logistic(gate[c]).value * up[c];
  });
}

void CpuKernels::run(const SwigluBackward& op) const {
  const std::int64_t cols = op.dout.cols();
  float* dgate_up = op.dgate_up.data<float>();
  const float* dout = op.dout.data<float>();
  const float* gate_up = op.gate_up.data<float>();
  for_each_row(op.dout.rows(), cols, [=](std::int64_t row) {
    const float* gate = gate_up + 2 * row * cols;
    const float* up = gate + cols;
    const float* dout_row = dout + row * cols;
    float* dgate = dgate_up + 2 * row * cols;
    float* dup = dgate + cols;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      const Logistic s = logistic(gate[c]);
      dgate[c] = dout_row[c] * up[c] * (s.value + gate[c] * s.slope);
      dup[c] = dout_row[c] * gate[c] * s.value;
    }
  });
}

}  // namespace redspine
