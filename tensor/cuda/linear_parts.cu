#include <cmath>

#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/linear_parts.h"
#include "tensor/cuda/logistic.h"
#include "tensor/gelu.h"

namespace redspine::cuda {
namespace {

template <class T>
struct AddToRows {
  T* x;
  const T* bias;
  std::int64_t cols;

  template <int width>
  __device__ void apply(std::int64_t row, std::int64_t c) const {
    T* at = x + row * cols + c;
    Floats<width> sum = load<width>(at);
    const Floats<width> added = load<width>(bias + c);
#pragma unroll
    for (int j = 0; j < width; ++j) sum.values[j] += added.values[j];
    store(at, sum);
  }
};

struct GeluTanh {
  __device__ static float value(float x) { return x * logistic(TanhGelu::exponent(x)).value; }
  __device__ static float slope(float x) {
    const Logistic s = logistic(TanhGelu::exponent(x));
    return s.value + x * s.slope * TanhGelu::exponent_slope(x);
  }
};

struct GeluExact {
  static constexpr float kRootHalf = 0.707106781F;          // 1 / sqrt(2)
  static constexpr float kInverseRootTwoPi = 0.398942280F;  // 1 / sqrt(2 pi)

  // By erfc, which keeps its relative accuracy in the lower tail where 1 + erf cancels.
  __device__ static float cumulative(float x) { return 0.5F * erfcf(-kRootHalf * x); }
  __device__ static float value(float x) { return x * cumulative(x); }
  __device__ static float slope(float x) {
    return cumulative(x) + x * kInverseRootTwoPi * expf(-0.5F * x * x);
  }
};

template <class T, class Kind>
struct Gelu {
  T* out;
  const T* x;

  template <int width>
  __device__ void apply(std::int64_t i) const {
    Floats<width> v = load<width>(x + i);
#pragma unroll
    for (int j = 0; j < width; ++j) v.values[j] = Kind::value(v.values[j]);
    store(out + i, v);
  }
};

template <class T, class Kind>
struct GeluSlope {
  T* dx;
  const T* x;

  template <int width>
  __device__ void apply(std::int64_t i) const {
    Floats<width> gradient = load<width>(dx + i);
    const Floats<width> v = load<width>(x + i);
#pragma unroll
    for (int j = 0; j < width; ++j) gradient.values[j] *= Kind::slope(v.values[j]);
    store(dx + i, gradient);
  }
};

struct CopyRows {
  BFloat* to;
  std::int64_t to_stride;
  const BFloat* from;
  std::int64_t from_stride;

  // One element at a time: at most one of the two sides starts its rows on a boundary.
  template <int width>
  __device__ void apply(std::int64_t row, std::int64_t c) const {
    static_assert(width == 1);
    to[row * to_stride + c] = from[row * from_stride + c];
  }
};

// body.operator()<T, Kind>() for activations of `dtype`.
template <class Body>
void with_gelu(DType dtype, GeluKind kind, const Body& body) {
  with_type(dtype, [&]<class T>() {
    switch (kind) {
      case GeluKind::tanh:
        return body.template operator()<T, GeluTanh>();
      case GeluKind::exact:
        return body.template operator()<T, GeluExact>();
    }
  });
}

}  // namespace

void add_bias(cudaStream_t stream, TensorView x, ConstTensorView bias) {
  with_type(x.dtype(), [&]<class T>() {
    const AddToRows<T> add{elements<T>(x), elements<T>(bias), x.cols()};
    for_each_row<T>(stream, add, {x.rows(), x.cols()}, access_to_rows<T>(x.cols(), x, bias));
  });
}

void copy_rows(cudaStream_t stream, const RowCopy& copy) {
  const CopyRows op{static_cast<BFloat*>(copy.to), copy.to_stride,
                    static_cast<const BFloat*>(copy.from), copy.from_stride};
  launch(stream, {static_cast<unsigned>(copy.rows), block_size_for(copy.cols)},
         rows_kernel<1, CopyRows>, op, copy.cols);
}

void apply_gelu(cudaStream_t stream, TensorView out, ConstTensorView x, GeluKind kind) {
  with_gelu(x.dtype(), kind, [&]<class T, class Kind>() {
    for_each_element<T>(stream, Gelu<T, Kind>{elements<T>(out), elements<T>(x)}, x.count(),
                        access_to(out, x));
  });
}

void multiply_by_gelu_slope(cudaStream_t stream, TensorView dx, ConstTensorView x, GeluKind kind) {
  with_gelu(x.dtype(), kind, [&]<class T, class Kind>() {
    for_each_element<T>(stream, GeluSlope<T, Kind>{elements<T>(dx), elements<T>(x)}, x.count(),
                        access_to(dx, x));
  });
}

}  // namespace redspine::cuda
