#include "trainer/checkpoint/format/element_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace redspine {
namespace {

float widened(std::uint16_t bits, ElementType type) {
  float value = 0.0F;
  widen(std::span(&value, 1), std::as_bytes(std::span(&bits, 1)), type);
  return value;
}

// The value of f16 bits from the definition of the format.
double value_of_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(ElementType, EveryF16IsReadAsTheNumberThatItMeans) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = widened(half, ElementType::f16);
    if ((half & 0x7FFF) > 0x7C00) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else if ((half & 0x7FFF) == 0x7C00) {
      EXPECT_TRUE(std::isinf(value)) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(value), value_of_f16(half)) << bits;
    }
  }
}

TEST(ElementType, WhatWasReadFromSixteenBitsIsWrittenAsTheSameBits) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float from_f16 = widened(half, ElementType::f16);
    if (!std::isnan(from_f16)) {
      EXPECT_EQ(to_f16(from_f16), half);
    }
    const float from_bf16 = widened(half, ElementType::bf16);
    if (!std::isnan(from_bf16)) {
      EXPECT_EQ(to_bf16(from_bf16), half);
    }
  }
}

// No f16 is nearer, and of two equally near ones the even is taken.
TEST(ElementType, F16IsTheNearest) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-27.0F, 17.0F);
  for (int i = 0; i < 20000; ++i) {
    const float value = std::exp2(exponent(random)) * (i % 2 == 0 ? 1.0F : -1.0F);
    const std::uint16_t half = to_f16(value);
    if (std::abs(value) >= 65520.0F) {
      EXPECT_EQ(half & 0x7FFF, 0x7C00) << value;
      continue;
    }
    const double error = std::abs(value_of_f16(half) - static_cast<double>(value));
    for (const int step : {-1, 1}) {
      const auto magnitude = static_cast<int>(half & 0x7FFF) + step;
      if (magnitude < 0 || magnitude >= 0x7C00) continue;
      const auto other = static_cast<std::uint16_t>((half & 0x8000) | magnitude);
      EXPECT_LE(error, std::abs(value_of_f16(other) - static_cast<double>(value))) << value;
    }
  }
  EXPECT_EQ(to_f16(1.0F + 0x1p-11F), to_f16(1.0F));
  EXPECT_EQ(to_f16(1.0F + 3 * 0x1p-11F), to_f16(1.0F + 0x1p-9F));
  EXPECT_EQ(to_f16(65519.0F), 0x7BFF);
}

TEST(ElementType, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(widened(to_f16(nan), ElementType::f16)));
  EXPECT_TRUE(std::isnan(widened(to_bf16(nan), ElementType::bf16)));
}

TEST(ElementType, EveryNameIsReadBack) {
  for (const ElementType type : {ElementType::boolean, ElementType::f16, ElementType::f64}) {
    EXPECT_EQ(element_type(name_of(type)), type);
  }
  EXPECT_FALSE(element_type("F8").has_value());
}

}  // namespace
}  // namespace redspine
