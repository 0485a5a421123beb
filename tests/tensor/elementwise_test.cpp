#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/ops.h"
#include "tests/support/expect_close.h"
#include "tests/support/random_tensor.h"
#include "tests/tensor/shapes.h"

namespace redspine {
namespace {

using namespace redspine::testing;

TEST(Add, AddsInPlace) {
  const auto device = make_cpu_device(2);
  for (const auto& [rows, cols] : kRaggedShapes) {
    const auto before = random_values(rows * cols, 1);
    const auto x = random_values(rows * cols, 2);
    const Tensor out = to_device(*device, before, {rows, cols});
    ops::run(*device, Add{.out = out, .x = to_device(*device, x, {rows, cols})});
    expect_close(from_device(*device, out), plus(widen(before), widen(x)), 1e-7);
  }
}

TEST(AddBias, AddsTheBiasToEveryRow) {
  const auto device = make_cpu_device(2);
  for (const auto& [rows, cols] : kRaggedShapes) {
    const auto before = random_values(rows * cols, 1);
    const auto bias = random_values(cols, 2);
    Values expected = widen(before);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] += static_cast<double>(bias[i % static_cast<std::size_t>(cols)]);
    }
    const Tensor x = to_device(*device, before, {rows, cols});
    ops::run(*device, AddBias{.x = x, .bias = to_device(*device, bias, {cols})});
    expect_close(from_device(*device, x), expected, 1e-7);
  }
}

TEST(AddBiasBackward, AddsTheSumOfEveryColumn) {
  const auto device = make_cpu_device(2);
  for (const auto& [rows, cols] : kRaggedShapes) {
    const auto before = random_values(cols, 1);
    const auto dy = random_values(rows * cols, 2);
    Values expected = widen(before);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      expected[i % static_cast<std::size_t>(cols)] += static_cast<double>(dy[i]);
    }
    const Tensor dbias = to_device(*device, before, {cols});
    ops::run(*device, AddBiasBackward{.dbias = dbias, .dy = to_device(*device, dy, {rows, cols})});
    expect_close(from_device(*device, dbias), expected, 1e-6);
  }
}

TEST(SumOfSquares, IsAddedInDoublePrecision) {
  const auto device = make_cpu_device(2);
  for (std::int64_t count : {0, 1, 7, 16384, 16385, 100003}) {
    const auto x = random_values(count, 1);
    double expected = 1.5;
    for (double value : widen(x)) expected += value * value;
    const Tensor sum = to_device<double>(*device, {1.5}, {1});
    ops::run(*device, SumOfSquares{.sum = sum, .x = to_device(*device, x, {count})});
    EXPECT_NEAR(from_device<double>(*device, sum)[0], expected, 1e-13 * expected);
  }
}

TEST(SumOfSquares, NeitherOverflowsNorHidesWhatIsNotFinite) {
  const auto device = make_cpu_device(2);
  auto x = random_values(50000, 1);
  x[49999] = 1e30F;
  const auto sum_of = [&] {
    const Tensor sum(*device, DType::f64, {1});
    ops::run(*device, SumOfSquares{.sum = sum, .x = to_device(*device, x, {50000})});
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
