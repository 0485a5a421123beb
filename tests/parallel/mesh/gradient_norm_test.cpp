
#include "tests/support/gradient_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

TEST(GradientNorm, AddsUpTheSquaresOfWhatEachRankCounts) {
  const auto device = make_cpu_device(1);
  // Rank r counts r + 1 elements of value 2 in each of two tensors, and an empty one.
  const std::int64_t count = world().rank() + 1;
  const Tensor a = to_device(*device, std::vector<float>(count, 2.0F), {count});
  const Tensor b = to_device(*device, std::vector<float>(count, -2.0F), {1, count});
  Tensor nothing(*device, DType::f32, {0});
  const std::vector<ConstTensorView> owned{a, nothing, b};
  const int size = world().size();
  const double expected = std::sqrt(2.0 * 4.0 * size * (size + 1) / 2.0);
  EXPECT_NEAR(global_gradient_norm(*device, owned, world()), expected, 1e-12 * expected);
}

TEST(GradientNorm, IsASumInF64) {
  const auto device = make_cpu_device(1);
  // In f32 the small elements would vanish beside the large one, and its square would overflow.
  std::vector<float> values(100'001, 1e21F);
  values[0] = 1e23F;
  const Tensor gradient = to_device(*device, values, {std::ssize(values)});
  const std::vector<ConstTensorView> owned{gradient};
  const double large = static_cast<double>(values[0]);
  const double small = static_cast<double>(values[1]);
  const double expected = std::sqrt(world().size() * (large * large + 100'000.0 * small * small));
  EXPECT_NEAR(global_gradient_norm(*device, owned, world()), expected, 1e-12 * expected);
}

TEST(GradientNorm, ANonFiniteGradientOfOneRankReachesAll) {
  const auto device = make_cpu_device(1);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (int bad_rank = 0; bad_rank < world().size(); ++bad_rank) {
      const float mine = world().rank() == bad_rank ? bad : 1.0F;
      const Tensor gradient = to_device(*device, std::vector<float>{1.0F, mine}, {2});
      const std::vector<ConstTensorView> owned{gradient};
      EXPECT_FALSE(std::isfinite(global_gradient_norm(*device, owned, world())));
    }
  }
}

}  // namespace
}  // namespace redspine::testing
