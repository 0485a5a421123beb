// What a thread moves at once: 16 bytes where alignment allows, else one element. Values are
// widened to f32 in registers and rounded once when they are stored. Device code; local.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "tensor/view.h"

namespace redspine::cuda {

using BFloat = __nv_bfloat16;

inline constexpr int kVectorBytes = 16;
/// Elements of one full access of T.
template <class T>
inline constexpr int kFullWidth = kVectorBytes / static_cast<int>(sizeof(T));

template <int width>
struct Floats {
  float values[width];
};

__device__ inline float widen(float value) { return value; }
__device__ inline float widen(BFloat value) { return __bfloat162float(value); }

template <class T>
__device__ T narrow(float value);
template <>
__device__ inline float narrow<float>(float value) {
  return value;
}
template <>
__device__ inline BFloat narrow<BFloat>(float value) {
  return __float2bfloat16(value);
}

/// What one access moves; `count` elements of T.
template <class T, int count>
struct alignas(sizeof(T) * count) Piece {
  T values[count];
};

/// `width` elements from `from`, which must be aligned to 16 bytes unless width is 1. A width of 8
/// takes two accesses of f32.
template <int width, class T>
__device__ Floats<width> load(const T* from) {
  constexpr int kCount = width < kFullWidth<T> ? width : kFullWidth<T>;
  Floats<width> floats;
#pragma unroll
  for (int begin = 0; begin < width; begin += kCount) {
    const auto piece = *reinterpret_cast<const Piece<T, kCount>*>(from + begin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) floats.values[begin + i] = widen(piece.values[i]);
  }
  return floats;
}

template <int width, class T>
__device__ void store(T* to, const Floats<width>& floats) {
  constexpr int kCount = width < kFullWidth<T> ? width : kFullWidth<T>;
#pragma unroll
  for (int begin = 0; begin < width; begin += kCount) {
    Piece<T, kCount> piece;
#pragma unroll
    for (int i = 0; i < kCount; ++i) piece.values[i] = narrow<T>(floats.values[begin + i]);
    *reinterpret_cast<Piece<T, kCount>*>(to + begin) = piece;
  }
}

/// The view's elements as device code knows them: float or BFloat.
template <class T>
T* elements(TensorView view) {
  return static_cast<T*>(view.raw());
}
template <class T>
const T* elements(ConstTensorView view) {
  return static_cast<const T*>(view.raw());
}

template <class T>
const T* elements_or_null(ConstTensorView view) {
  return view.count() == 0 ? nullptr : elements<T>(view);
}

/// How many elements a thread moves at once: a full access of 16 bytes, or one element.
enum class Access { full, single };

/// The access to flat arrays: full where every view starts on a 16-byte boundary, as an empty view
/// does.
template <class... Views>
Access access_to(const Views&... views) {
  const bool is_aligned =
      ((reinterpret_cast<std::uintptr_t>(views.raw()) % kVectorBytes == 0) && ...);
  return is_aligned ? Access::full : Access::single;
}

/// The access to rows of `cols` elements of T, or of a multiple of it: full where every row of
/// every view starts on a 16-byte boundary.
template <class T, class... Views>
Access access_to_rows(std::int64_t cols, const Views&... views) {
  return cols % kFullWidth<T> == 0 ? access_to(views...) : Access::single;
}

/// body.operator()<width>() with the number of elements that one access moves.
template <class T, class Body>
void with_width(Access access, const Body& body) {
  if (access == Access::full) {
    body.template operator()<kFullWidth<T>>();
  } else {
    body.template operator()<1>();
  }
}

/// body.operator()<T>() with the element type of `dtype`, which is f32 or bf16.
template <class Body>
void with_type(DType dtype, const Body& body) {
  if (dtype == DType::bf16) {
    body.template operator()<BFloat>();
  } else {
    body.template operator()<float>();
  }
}

}  // namespace redspine::cuda
