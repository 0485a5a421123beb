// Vectors of floats, as wide as the machine's. Internal to tensor/cpu; pure.
#pragma once

#include <cmath>
#include <cstring>
#include <experimental/simd>
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace redspine {

inline constexpr int kVectorFloats =
    static_cast<int>(std::experimental::native_simd<float>::size());

typedef float Vector __attribute__((vector_size(kVectorFloats * sizeof(float))));  // NOLINT

/// c + a * b, rounded once whatever the compiler makes of other expressions.
[[gnu::always_inline]] inline Vector fused(float a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return Vector(_mm512_fmadd_ps(_mm512_set1_ps(a), __m512(b), __m512(c)));
#elif defined(__FMA__)
  return Vector(_mm256_fmadd_ps(_mm256_set1_ps(a), __m256(b), __m256(c)));
#else
  for (int i = 0; i < kVectorFloats; ++i) c[i] = std::fma(a, b[i], c[i]);
  return c;
#endif
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
