// What a thread moves at once: 16 bytes where alignment allows, else one element. Values are
// widened to f32 in registers and rounded once when they are stored. Device code; local.
#pragma once

#include <cuda_bf16.h>

#include "tensor/cuda/access.h"

namespace redspine::cuda {

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

}  // namespace redspine::cuda
