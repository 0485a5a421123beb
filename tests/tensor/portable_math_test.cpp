// Against the C library in long double, and against values of this library's own: the bits are what
// it promises.
#include "tensor/portable_math.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace redspine {
namespace {

double ulps(double value, long double exact) {
  int power = 0;
  std::frexp(static_cast<double>(exact), &power);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) /
                             std::ldexp(1.0L, power - 53));
}

class Arguments {
 public:
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

 private:
  std::mt19937_64 random_{1};
};

constexpr int kNumArguments = 200'000;

TEST(PortableMath, IsWithinTwoUlpsOrTheErrorItStates) {
  Arguments arguments;
  for (int i = 0; i < kNumArguments; ++i) {
    const double power = arguments.between(-300.0, 300.0);
    const double x = std::exp(power);
    ASSERT_LT(ulps(portable::log(x), std::log(static_cast<long double>(x))), 2.0) << x;
    const double near_one = arguments.between(0.6, 1.6);
    ASSERT_LT(ulps(portable::log(near_one), std::log(static_cast<long double>(near_one))), 2.0);
    ASSERT_LT(ulps(portable::exp(power), std::exp(static_cast<long double>(power))), 2.0) << power;
    const double angle = arguments.between(-1.0, 1.0) * std::pow(10.0, arguments.between(-3, 6));
    const auto exact_angle = static_cast<long double>(angle);
    ASSERT_NEAR(portable::sin(angle), static_cast<double>(std::sin(exact_angle)), 0x1.8p-53);
    ASSERT_NEAR(portable::cos(angle), static_cast<double>(std::cos(exact_angle)), 0x1.8p-53);
    const double base = arguments.between(0.5, 1e5);
    const double exponent = arguments.between(-2.0, 2.0);
    const long double exact =
        std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
    const double bound = 0x1p-52 * (std::abs(exponent * std::log(base)) + 1.0);
    ASSERT_LT(std::abs(portable::pow(base, exponent) / static_cast<double>(exact) - 1.0), bound);
  }
}

TEST(PortableMath, HasTheValuesAtTheEnds) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(portable::log(1.0), 0.0);
  EXPECT_EQ(portable::log(0.0), -kInfinity);
  EXPECT_EQ(portable::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(portable::log(-1.0)));
  EXPECT_EQ(portable::exp(0.0), 1.0);
  EXPECT_EQ(portable::exp(-1e300), 0.0);
  EXPECT_EQ(portable::exp(1e300), kInfinity);
  EXPECT_GT(portable::exp(-745.0), 0.0) << "a denormal number";
  EXPECT_TRUE(std::isnan(portable::exp(std::nan(""))));
  EXPECT_EQ(portable::sin(0.0), 0.0);
  EXPECT_EQ(portable::cos(0.0), 1.0);
}

// Any compiler and any machine.
TEST(PortableMath, HasTheSameBitsEverywhere) {
  std::uint64_t state = 1;
  const auto next = [&state] {  // in [0, 1), by integers alone
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53;
  };
  std::vector<double> values;
  for (int i = 0; i < kNumArguments; ++i) {
    const double x = next();
    values.push_back(portable::log(x + 0x1p-60));
    values.push_back(portable::exp(200.0 * (x - 0.5)));
    values.push_back(portable::sin(1e5 * (x - 0.5)));
    values.push_back(portable::cos(1e5 * (x - 0.5)));
    values.push_back(portable::pow(10000.0, -x));
  }
  EXPECT_EQ(XXH3_64bits(values.data(), values.size() * sizeof(double)), 2431048718614151875ULL);
}

}  // namespace
}  // namespace redspine
