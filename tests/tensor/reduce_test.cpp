#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/ops.h"
#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using namespace redspine::testing;

TEST(SumOfSquares, IsAddedInDoublePrecision) {
  const auto device = make_cpu_device(2);
  for (std::int64_t count : {0, 1, 7, 16384, 16385, 100003}) {
    const auto x = random_values(count, 1);
    double expected = 1.5;
    for (double value : widen(x)) expected += value * value;
    Tensor sum = to_device<double>(*device, {1.5}, {1});
    const Tensor tensor = to_device(*device, x, {count});
    const ConstTensorView view = tensor;
    ops::run(*device, SumOfSquares{.sum = sum, .parts = {&view, 1}});
    EXPECT_NEAR(from_device<double>(*device, sum)[0], expected, 1e-13 * expected);
  }
}

TEST(SumOfSquares, NeitherOverflowsNorHidesWhatIsNotFinite) {
  const auto device = make_cpu_device(2);
  auto x = random_values(50000, 1);
  x[49999] = 1e30F;
  const auto sum_of = [&] {
    Tensor sum(*device, DType::f64, {1});
    const Tensor tensor = to_device(*device, x, {50000});
    const ConstTensorView view = tensor;
    ops::run(*device, SumOfSquares{.sum = sum, .parts = {&view, 1}});
    return from_device<double>(*device, sum)[0];
  };
  EXPECT_NEAR(sum_of() / 1e60, 1.0, 1e-6);
  x[20000] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(sum_of()));
  x[777] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum_of()));
}

}  // namespace
}  // namespace redspine
