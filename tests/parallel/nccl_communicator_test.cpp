#include "parallel/nccl_communicator.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

TEST(NcclCommunicator, IsWhatRanksWithGpusOfTheirOwnGet) {
  const auto device = make_cuda_device(world().rank());
  const bool has_own = num_cuda_devices() >= world().size();
  EXPECT_EQ(choose_collectives(world(), *device, Collectives::automatic),
            has_own ? Collectives::nccl : Collectives::mpi);
}

TEST(NcclCommunicator, AddsInARingUnlessToldOtherwise) {
  if (num_cuda_devices() < world().size()) return;
  const auto device = make_cuda_device(world().rank());
  make_nccl_communicator(world(), *device);
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "Ring");
  setenv("NCCL_ALGO", "Tree", 1);
  make_nccl_communicator(world(), *device);
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "Tree");
}

}  // namespace
}  // namespace redspine::testing
