// Vectors of floats, as wide as the machine's. Internal to tensor/cpu; pure.
#pragma once

#include <cmath>
#include <cstring>
#include <experimental/simd>

namespace redspine {

inline constexpr int kVectorFloats =
    static_cast<int>(std::experimental::native_simd<float>::size());

typedef float Vector __attribute__((vector_size(kVectorFloats * sizeof(float))));  // NOLINT

/// c + a * b, each element rounded once. A loop, of which compilers make one instruction: what they
/// make of intrinsics in attention's loops is slower by a third.
[[gnu::always_inline]] inline Vector fused(float a, Vector b, Vector c) {
  Vector sum;
  for (int i = 0; i < kVectorFloats; ++i) sum[i] = std::fma(a, b[i], c[i]);
  return sum;
}

/// From and to any address.
template <class V = Vector>
[[gnu::always_inline]] inline V load(const float* from) {
  V vector;
  std::memcpy(&vector, from, sizeof(V));
  return vector;
}
template <class V>
[[gnu::always_inline]] inline void store(float* to, V vector) {
  std::memcpy(to, &vector, sizeof(V));
}

}  // namespace redspine
