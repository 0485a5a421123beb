// The normal numbers that weights are drawn from: their distribution, and that a piece of a matrix
// has the numbers of the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "tensor/random_normal.h"

namespace redspine {
namespace {

std::vector<float> normal_row(std::int64_t count, std::uint64_t key, float spread = 1.0F) {
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_normal(values, {.num_rows = 1, .num_cols = count, .first_element = 0, .row_stride = count},
              key, spread);
  return values;
}

template <class Condition>
double num_where(const std::vector<float>& values, const Condition& condition) {
  return static_cast<double>(std::count_if(values.begin(), values.end(), condition));
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

TEST(NormalNumbers, HaveTheNormalDistribution) {
  constexpr std::int64_t kCount = 1'000'000;
  for (const std::uint64_t key : {1, 2, 3}) {
    std::vector<float> values = normal_row(kCount, key);
    std::sort(values.begin(), values.end());
    double largest = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = normal_cdf(static_cast<double>(values[i]));
      const auto below = static_cast<double>(i) / kCount;
      largest = std::max(
          {largest, std::abs(expected - below), std::abs(expected - below - 1.0 / kCount)});
    }
    // Kolmogorov-Smirnov: larger in one of 10^6 experiments.
    EXPECT_LT(largest * std::sqrt(static_cast<double>(kCount)), 2.69);
  }
}

TEST(NormalNumbers, HaveTheTailsOfTheNormalDistribution) {
  constexpr std::int64_t kCount = 4'000'000;
  const std::vector<float> values = normal_row(kCount, 11);
  for (const float z : {2.0F, 3.0F, 4.0F, 4.5F}) {
    const double expected = kCount * normal_cdf(-static_cast<double>(z));
    const double bound = 5.0 * std::sqrt(expected);
    EXPECT_NEAR(num_where(values, [&](float v) { return v > z; }), expected, bound)
        << "above " << z;
    EXPECT_NEAR(num_where(values, [&](float v) { return v < -z; }), expected, bound)
        << "below " << -z;
  }
  // The quantile of 2^-33, the smallest probability that 32 bits give.
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 6.4F);
  EXPECT_GT(*std::min_element(values.begin(), values.end()), -6.4F);
}

TEST(NormalNumbers, ScaleWithTheStandardDeviation) {
  const std::vector<float> one = normal_row(1000, 5);
  const std::vector<float> small = normal_row(1000, 5, 0.02F);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_FLOAT_EQ(small[i], 0.02F * one[i]);
  }
}

TEST(NormalNumbers, OfAPieceAreThoseOfTheWhole) {
  constexpr std::int64_t kRows = 13;
  constexpr std::int64_t kCols = 11;  // no multiple of the four numbers of a Philox call
  std::vector<float> whole(kRows * kCols);
  fill_normal(whole,
              {.num_rows = kRows, .num_cols = kCols, .first_element = 0, .row_stride = kCols}, 9,
              1.0F);
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t col = 0; col < kCols; ++col) {
      const std::int64_t num_rows = std::min<std::int64_t>(3, kRows - row);
      const std::int64_t num_cols = std::min<std::int64_t>(6, kCols - col);
      std::vector<float> piece(static_cast<std::size_t>(num_rows * num_cols));
      fill_normal(piece,
                  {.num_rows = num_rows,
                   .num_cols = num_cols,
                   .first_element = row * kCols + col,
                   .row_stride = kCols},
                  9, 1.0F);
      for (std::int64_t r = 0; r < num_rows; ++r) {
        for (std::int64_t c = 0; c < num_cols; ++c) {
          ASSERT_EQ(piece[static_cast<std::size_t>(r * num_cols + c)],
                    whole[static_cast<std::size_t>((row + r) * kCols + col + c)]);
        }
      }
    }
  }
}

TEST(NormalNumbers, DoNotRepeatBeyond32BitsOfElements) {
  std::vector<float> low(1000);
  std::vector<float> high(1000);
  constexpr std::int64_t kFar = std::int64_t{1} << 34;  // 2^32 Philox calls further on
  fill_normal(low, {.num_rows = 1, .num_cols = 1000, .first_element = 0, .row_stride = 1000}, 2,
              1.0F);
  fill_normal(high, {.num_rows = 1, .num_cols = 1000, .first_element = kFar, .row_stride = 1000}, 2,
              1.0F);
  EXPECT_NE(low, high);
}

}  // namespace
}  // namespace redspine
