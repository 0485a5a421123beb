#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/parallel_for.h"
#include "tensor/cpu/vector_math.h"

namespace redspine {
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
