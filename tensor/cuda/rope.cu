#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/elementwise.h"

namespace redspine::cuda {
namespace {

// A column is a pair of one of the rotated heads: number head * half + i.
template <class T>
struct Rotate {
  T* x;
  const float* cos;
  const float* sin;
  std::int64_t length;
  std::int64_t row_size;
  std::int64_t half;
  float sign;

  template <int width>
  __device__ void apply(std::int64_t row, std::int64_t pair) const {
    const std::int64_t i = pair % half;
    T* low = x + row * row_size + (pair - i) * 2 + i;
    T* high = low + half;
    const std::int64_t angle = row % length * half + i;
    Floats<width> a = load<width>(low);
    Floats<width> b = load<width>(high);
    const Floats<width> c = load<width>(cos + angle);
    const Floats<width> s = load<width>(sin + angle);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const float turned_low = a.values[j] * c.values[j] - b.values[j] * sign * s.values[j];
      b.values[j] = b.values[j] * c.values[j] + a.values[j] * sign * s.values[j];
      a.values[j] = turned_low;
    }
    store(low, a);
    store(high, b);
  }
};

}  // namespace

void CudaKernels::run(const Rope& op) const {
  const std::int64_t half = op.cos.cols();
  with_type(op.x.dtype(), [&]<class T>() {
    const Rotate<T> rotate{.x = elements<T>(op.x),
                           .cos = elements<float>(op.cos),
                           .sin = elements<float>(op.sin),
                           .length = op.x.dim(1),
                           .row_size = op.x.cols(),
                           .half = half,
                           .sign = op.direction == RopeDirection::forward ? 1.0F : -1.0F};
    for_each_row<T>(stream_, rotate, {op.x.rows(), op.num_rotated_heads * half},
                    access_to_rows<T>(half, op.x, op.cos, op.sin));
  });
}

}  // namespace redspine::cuda
