#include "parallel/nccl/nccl_communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "parallel/mesh/choose_communicator.h"
#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

TEST(NcclCommunicator, IsWhatRanksWithGpusOfTheirOwnGet) {
  const auto device = make_cuda_device(world().rank());
  const bool has_own = world().size() > 1 && num_cuda_devices() >= world().size();
  EXPECT_EQ(choose_collective_backend(world(), *device, CollectiveBackend::automatic),
            has_own ? CollectiveBackend::nccl : CollectiveBackend::mpi);
}

class NcclEnvironment : public ::testing::Test {
 protected:
  ~NcclEnvironment() override {
    unsetenv("NCCL_ALGO");
    unsetenv("REDSPINE_ON_HOST_NCCL_CALL_MS");
  }
};

TEST_F(NcclEnvironment, AddsInARingUnlessToldOtherwise) {
  if (num_cuda_devices() < world().size()) return;
  const auto device = make_cuda_device(world().rank());
  make_nccl_communicator(world(), *device);
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "Ring");
  setenv("NCCL_ALGO", "Tree", 1);
  make_nccl_communicator(world(), *device);
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "Tree");
}

// NCCL forbids two threads on one communicator, and the stand-in refuses them: here its calls are
// long enough for the watchdog, which looks every tenth of a second, to come into one.
TEST_F(NcclEnvironment, TheWatchdogKeepsOutOfTheWayOfACall) {
  if (num_cuda_devices() < world().size()) return;
  const auto device = make_cuda_device(world().rank());
  const auto communicator = make_nccl_communicator(world(), *device);
  Tensor values = to_device(*device, std::vector<float>{1.0F}, {1});
  setenv("REDSPINE_ON_HOST_NCCL_CALL_MS", "30", 1);
  for (int call = 0; call < 8; ++call) {
    communicator->all_reduce(values, ReduceOp::sum, Stream::compute);
  }
  const auto expected = static_cast<float>(std::pow(world().size(), 8));
  EXPECT_EQ(from_device(*device, values), std::vector<float>{expected});
}

}  // namespace
}  // namespace redspine::testing
