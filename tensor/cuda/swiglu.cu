#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/logistic.h"

namespace redspine::cuda {
namespace {

template <class T>
struct SwigluForward {
  T* out;
  const T* gate_up;
  std::int64_t cols;

  template <int width>
  __device__ void apply(std::int64_t row, std::int64_t c) const {
    const T* at = gate_up + 2 * row * cols + c;
    Floats<width> gate = load<width>(at);
    const Floats<width> up = load<width>(at + cols);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      gate.values[j] = gate.values[j] * logistic(gate.values[j]).value * up.values[j];
    }
    store(out + row * cols + c, gate);
  }
};

template <class T>
struct SwigluGradient {
  T* dgate_up;
  const T* dout;
  const T* gate_up;
  std::int64_t cols;

  template <int width>
  __device__ void apply(std::int64_t row, std::int64_t c) const {
    const std::int64_t at = 2 * row * cols + c;
    Floats<width> gate = load<width>(gate_up + at);
    Floats<width> up = load<width>(gate_up + at + cols);
    const Floats<width> gradient = load<width>(dout + row * cols + c);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const float g = gate.values[j];
      const Logistic s = logistic(g);
      gate.values[j] = gradient.values[j] * up.values[j] * (s.value + g * s.slope);
      up.values[j] = gradient.values[j] * g * s.value;
    }
    store(dgate_up + at, gate);
    store(dgate_up + at + cols, up);
  }
};

}  // namespace

void CudaKernels::run(const Swiglu& op) const {
  with_type(op.out.dtype(), [&]<class T>() {
    const SwigluForward<T> swiglu{elements<T>(op.out), elements<T>(op.gate_up), op.out.cols()};
    for_each_row<T>(stream_, swiglu, {op.out.rows(), op.out.cols()},
                    access_to_rows<T>(op.out.cols(), op.out, op.gate_up));
  });
}

void CudaKernels::run(const SwigluBackward& op) const {
  with_type(op.dout.dtype(), [&]<class T>() {
    const SwigluGradient<T> gradient{elements<T>(op.dgate_up), elements<T>(op.dout),
                                     elements<T>(op.gate_up), op.dout.cols()};
    for_each_row<T>(stream_, gradient, {op.dout.rows(), op.dout.cols()},
                    access_to_rows<T>(op.dout.cols(), op.dgate_up, op.dout, op.gate_up));
  });
}

}  // namespace redspine::cuda
