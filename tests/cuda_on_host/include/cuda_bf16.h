// The stand-in of CUDA's bf16 type: the upper half of a float, rounded to nearest even. Kernels
// convert and compute in float, so arithmetic on bf16 itself is not offered.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's
struct alignas(2) __nv_bfloat16 {
  std::uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  if (std::isnan(value)) return {0x7fff};
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float value) { return __float2bfloat16_rn(value); }

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
// NOLINTEND(bugprone-reserved-identifier)
