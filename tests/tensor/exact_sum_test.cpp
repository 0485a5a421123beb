#include "tensor/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace redspine {
namespace {

std::vector<double> terms_of_all_sizes(std::size_t count) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> mantissa(-1.0, 1.0);
  std::vector<double> terms;
  for (std::size_t i = 0; i < count; ++i) {
    terms.push_back(std::ldexp(mantissa(random), static_cast<int>(random() % 300) - 140));
  }
  return terms;
}

ExactSum sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  sum.normalise();
  return sum;
}

TEST(ExactSum, NoOrderAndNoGroupingEnters) {
  std::vector<double> terms = terms_of_all_sizes(10'000);
  const ExactSum expected = sum_of(terms);
  std::mt19937 random(2);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(terms.begin(), terms.end(), random);
    EXPECT_EQ(sum_of(terms).values(), expected.values());
    const auto middle = terms.begin() + static_cast<std::ptrdiff_t>(random() % terms.size());
    ExactSum halves = sum_of({terms.begin(), middle});
    halves += sum_of({middle, terms.end()});
    halves.normalise();
    EXPECT_EQ(halves.values(), expected.values());
    EXPECT_EQ(halves.total(), expected.total());
  }
}

TEST(ExactSum, IsExact) {
  EXPECT_EQ(sum_of({1e30, 1.0, -1e30}).total(), 1.0);
  EXPECT_EQ(sum_of({0x1p255, 0x1p-160, -0x1p255}).total(), 0x1p-160);
  EXPECT_EQ(sum_of({-0.75, 0.25}).total(), -0.5);
  EXPECT_EQ(sum_of({}).total(), 0.0);
  EXPECT_EQ(sum_of(std::vector<double>(1'000'000, 0.1)).total(), 100000.0)
      << "one after another in f64 they are 100000.00000133288";
}

TEST(ExactSum, CutsOffWhatIsTooSmallTermByTerm) {
  EXPECT_EQ(sum_of({0x1p-161, 0x1p-161}).total(), 0.0);
  EXPECT_EQ(sum_of({0x1.8p-160}).total(), 0x1p-160);
  EXPECT_EQ(sum_of({-0x1.8p-160}).total(), -0x1p-160) << "towards zero";
  EXPECT_EQ(sum_of({0x1p-1074}).total(), 0.0);
}

TEST(ExactSum, IsNaNWhereATermIsNotFiniteOrTooLarge) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(sum_of({1.0, kInfinity}).total()));
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, -kInfinity}).total()));
  EXPECT_TRUE(std::isnan(sum_of({std::nan("")}).total()));
  EXPECT_TRUE(std::isnan(sum_of({0x1p300}).total()));
  EXPECT_EQ(sum_of({0x1p284}).total(), 0x1p284);
}

}  // namespace
}  // namespace redspine
