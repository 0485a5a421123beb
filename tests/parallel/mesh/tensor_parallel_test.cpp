#include "parallel/mesh/tensor_parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

struct TensorRegion : ::testing::Test {
  std::unique_ptr<Device> device = make_cpu_device(1);
  const int size = world().size();
  const ProcessMesh mesh{world(), MeshShape::of(size, size), *device};
  const float rank = static_cast<float>(world().rank());
  const float sum = static_cast<float>(size) * static_cast<float>(size - 1) / 2.0F;
};

TEST_F(TensorRegion, WhatIsReducedFromItIsSummedForward) {
  Tensor x = to_device(*device, std::vector<float>{rank, 1.0F}, {2});
  reduce_from_tensor_region(*device, mesh, x);
  EXPECT_EQ(from_device(*device, x), (std::vector<float>{sum, static_cast<float>(size)}));
}

TEST_F(TensorRegion, TheGradientOfWhatIsCopiedToItIsSummed) {
  Tensor dx = to_device(*device, std::vector<float>{rank}, {1});
  copy_to_tensor_region_backward(*device, mesh, dx, {}, [] {});
  EXPECT_EQ(from_device(*device, dx), std::vector<float>{sum});
}

TEST_F(TensorRegion, WorkGoesOnBeneathThatSum) {
  Tensor dx = to_device(*device, std::vector<float>{rank}, {1});
  Tensor other(*device, DType::f32, {1});
  copy_to_tensor_region_backward(*device, mesh, dx, {}, [&] {
    device->upload(other, host_view(std::span<const float>(&rank, 1)));
  });
  EXPECT_EQ(from_device(*device, dx), std::vector<float>{sum});
  EXPECT_EQ(from_device(*device, other), std::vector<float>{rank});
}

// Two rows of three columns, and one more for each further rank: rank r has the rows from r on.
TEST_F(TensorRegion, RowsAreGatheredAndSumsScattered) {
  const auto num_rows = std::int64_t{size} + 1;
  const std::vector<Range> shares = partition(num_rows, size);
  const Range own = shares[static_cast<std::size_t>(world().rank())];
  const auto value = [](std::int64_t row) { return static_cast<float>(100 * row + 1); };
  Tensor x(*device, DType::f32, {1, num_rows, 3});
  const TensorView rows = x.view().reshape({num_rows, 3});
  for (std::int64_t row = own.begin; row < own.end; ++row) {
    std::fill_n(rows.slice(row, 1).data<float>(), 3, value(row));
  }
  gather_to_tensor_region(*device, mesh, x, shares);
  for (std::int64_t row = 0; row < num_rows; ++row) {
    EXPECT_EQ(from_device(*device, rows.slice(row, 1)), std::vector<float>(3, value(row)));
  }
  reduce_from_tensor_region(*device, mesh, x, shares);
  for (std::int64_t row = own.begin; row < own.end; ++row) {
    EXPECT_EQ(from_device(*device, rows.slice(row, 1)),
              std::vector<float>(3, value(row) * static_cast<float>(size)));
  }
  copy_to_tensor_region_backward(*device, mesh, x, shares, [] {});
  for (std::int64_t row = own.begin; row < own.end; ++row) {
    EXPECT_EQ(rows.slice(row, 1).data<float>()[2] > value(row), size > 1);
  }
}

TEST_F(TensorRegion, AMaximumIsTheSameOnAllRanks) {
  Tensor x = to_device(*device, std::vector<float>{rank}, {1});
  all_reduce_in_tensor_region(*device, mesh, x, ReduceOp::max);
  EXPECT_EQ(from_device(*device, x), std::vector<float>{static_cast<float>(size - 1)});
}

}  // namespace
}  // namespace redspine::testing
