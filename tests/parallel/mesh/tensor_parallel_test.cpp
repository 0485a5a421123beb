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
  copy_to_tensor_region_backward(*device, mesh, dx);
  EXPECT_EQ(from_device(*device, dx), std::vector<float>{sum});
}

TEST_F(TensorRegion, WorkGoesOnBeneathThatSum) {
  Tensor dx = to_device(*device, std::vector<float>{rank}, {1});
  Tensor other(*device, DType::f32, {1});
  copy_to_tensor_region_backward(*device, mesh, dx, [&] {
    device->upload(other, host_view(std::span<const float>(&rank, 1)));
  });
  EXPECT_EQ(from_device(*device, dx), std::vector<float>{sum});
  EXPECT_EQ(from_device(*device, other), std::vector<float>{rank});
}

TEST_F(TensorRegion, AMaximumIsTheSameOnAllRanks) {
  Tensor x = to_device(*device, std::vector<float>{rank}, {1});
  all_reduce_in_tensor_region(*device, mesh, x, ReduceOp::max);
  EXPECT_EQ(from_device(*device, x), std::vector<float>{static_cast<float>(size - 1)});
}

}  // namespace
}  // namespace redspine::testing
