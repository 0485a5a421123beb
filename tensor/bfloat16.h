// bfloat16: the upper half of an f32, as host code holds it. Arithmetic is done in f32. Local.
#pragma once

#include <bit>
#include <cstdint>

namespace redspine {

struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  /// Rounded to nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
  constexpr explicit BFloat16(float value) {
    constexpr std::uint32_t kInfinity = 0x7F800000;
    constexpr std::uint32_t kQuiet = 0x40;
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (wide & 0x7FFFFFFFU) > kInfinity;
    bits = static_cast<std::uint16_t>(is_nan ? wide >> 16 | kQuiet
                                             : (wide + 0x7FFFU + (wide >> 16 & 1U)) >> 16);
  }
  /// Exact.
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

}  // namespace redspine
