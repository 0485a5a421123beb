#include "tensor/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <limits>

namespace redspine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(VectorExp, IsWithinTwoUlpsOfTheExponential) {
  for (float x = -104; x < 88.72F; x += 0.00073F) {
    const auto exact = static_cast<float>(std::exp(static_cast<double>(x)));
    const float below = std::nextafter(std::nextafter(exact, 0.0F), 0.0F);
    const float above = std::nextafter(std::nextafter(exact, kInfinity), kInfinity);
    ASSERT_GE(vector_exp(x), below) << x;
    ASSERT_LE(vector_exp(x), above) << x;
  }
}

TEST(VectorExp, HasTheLimitsOfTheExponential) {
  EXPECT_EQ(vector_exp(0.0F), 1.0F);
  EXPECT_EQ(vector_exp(-kInfinity), 0.0F);
  EXPECT_EQ(vector_exp(-1000.0F), 0.0F);
  EXPECT_GT(vector_exp(-103.0F), 0.0F);  // a denormal
  EXPECT_EQ(vector_exp(88.8F), kInfinity);
  EXPECT_EQ(vector_exp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(vector_exp(kNaN)));
  EXPECT_TRUE(std::isnan(vector_exp(-kNaN)));
}

TEST(LogisticFunction, IsCloseOnBothSides) {
  for (float x = -80; x < 80; x += 0.0031F) {
    const double e = std::exp(-std::abs(static_cast<double>(x)));
    const Logistic s = logistic(x);
    ASSERT_NEAR(static_cast<double>(s.value) * (1 + e) / (x < 0 ? e : 1), 1, 3e-7) << x;
    ASSERT_NEAR(static_cast<double>(s.slope) * (1 + e) * (1 + e) / e, 1, 4e-7) << x;
  }
  EXPECT_EQ(logistic(-kInfinity).value, 0.0F);
  EXPECT_EQ(logistic(kInfinity).value, 1.0F);
  EXPECT_EQ(logistic(kInfinity).slope, 0.0F);
  EXPECT_TRUE(std::isnan(logistic(kNaN).value));
}

TEST(StandardNormalFunction, IsCloseInTheCentreAndInTheTail) {
  for (float x = -13; x < 13; x += 0.00037F) {
    const double cumulative = 0.5 * std::erfc(-static_cast<double>(x) * std::sqrt(0.5));
    const StandardNormal normal = standard_normal(x);
    ASSERT_NEAR(static_cast<double>(normal.cumulative), cumulative, 1e-7) << x;
    ASSERT_NEAR(static_cast<double>(normal.cumulative) / cumulative, 1, 5e-7) << x;
    const double density =
        std::exp(-0.5 * static_cast<double>(x) * static_cast<double>(x)) * 0.39894228040143268;
    ASSERT_NEAR(static_cast<double>(normal.density) / density, 1, 3e-7) << x;
  }
}

TEST(StandardNormalFunction, HasItsLimits) {
  EXPECT_EQ(standard_normal(-kInfinity).cumulative, 0.0F);
  EXPECT_EQ(standard_normal(kInfinity).cumulative, 1.0F);
  EXPECT_EQ(standard_normal(kInfinity).density, 0.0F);
  EXPECT_TRUE(std::isnan(standard_normal(kNaN).cumulative));
  EXPECT_TRUE(std::isnan(standard_normal(kNaN).density));
}

}  // namespace
}  // namespace redspine
