// Kernels with one planted problem each, beside their correct twins: the stand-in must report the
// problem, or the result must be wrong, under every seed that is tried.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tensor/cuda/launch.h"
#include "tests/cuda_on_host/device_fixture.h"

namespace redspine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr unsigned kThreads = 64;
constexpr int kNumSeeds = 20;
const LaunchShape kOneBlock{
    .num_blocks = 1, .block_size = kThreads, .shared_bytes = std::size_t{kThreads} * 4};

std::vector<int> ascending(int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = i;
  return values;
}

enum class Barrier { present, missing };

__global__ void reverse_kernel(int* out, const int* in, Barrier barrier) {
  int* shared = shared_memory<int>();
  shared[threadIdx.x] = in[threadIdx.x];
  if (barrier == Barrier::present) __syncthreads();
  out[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

TEST_F(CudaOnHost, AMissingBarrierBetweenWriteAndReadSpoilsTheResult) {
  std::vector<int> expected = ascending(kThreads);
  std::reverse(expected.begin(), expected.end());
  for (int seed = 1; seed <= kNumSeeds; ++seed) {
    use_seed(seed);
    const DeviceArray<int> in(ascending(kThreads));
    const DeviceArray<int> out(kThreads);
    launch(stream, kOneBlock, reverse_kernel, out.get(), in.get(), Barrier::present);
    ASSERT_EQ(outcome(), "");
    EXPECT_EQ(out.values(), expected);
    launch(stream, kOneBlock, reverse_kernel, out.get(), in.get(), Barrier::missing);
    ASSERT_EQ(outcome(), "");
    EXPECT_NE(out.values(), expected) << "seed " << seed;
  }
}

// Each round shifts by one through shared memory; the barrier in question keeps a fast thread from
// overwriting what a slow one has not read yet.
__global__ void shift_kernel(int* values, Barrier barrier) {
  int* shared = shared_memory<int>();
  for (int round = 0; round < 3; ++round) {
    shared[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = shared[(threadIdx.x + 1) % kThreads];
    if (barrier == Barrier::present) __syncthreads();
  }
}

TEST_F(CudaOnHost, AMissingBarrierBetweenReadAndOverwriteSpoilsTheResult) {
  std::vector<int> expected = ascending(kThreads);
  std::rotate(expected.begin(), expected.begin() + 3, expected.end());
  for (int seed = 1; seed <= kNumSeeds; ++seed) {
    use_seed(seed);
    const DeviceArray<int> right(ascending(kThreads));
    launch(stream, kOneBlock, shift_kernel, right.get(), Barrier::present);
    ASSERT_EQ(outcome(), "");
    EXPECT_EQ(right.values(), expected);
    const DeviceArray<int> wrong(ascending(kThreads));
    launch(stream, kOneBlock, shift_kernel, wrong.get(), Barrier::missing);
    ASSERT_EQ(outcome(), "");
    EXPECT_NE(wrong.values(), expected) << "seed " << seed;
  }
}

__global__ void half_block_barrier_kernel() {
  if (threadIdx.x < kThreads / 2) __syncthreads();
}

TEST_F(CudaOnHost, AThreadThatEndsWithoutTheBarrierIsNamed) {
  launch(stream, kOneBlock, half_block_barrier_kernel);
  EXPECT_THAT(outcome(), AllOf(HasSubstr("kernel half_block_barrier_kernel, block (0,0,0)"),
                               HasSubstr("thread (0,0,0) waits at __syncthreads of "),
                               HasSubstr("thread (32,0,0) has ended")));
}

__global__ void two_barriers_kernel() {
  // NOLINTNEXTLINE(bugprone-branch-clone): two barriers are the fault
  if (threadIdx.x < kThreads / 2) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_F(CudaOnHost, TwoHalvesAtTwoBarriersAreReported) {
  launch(stream, kOneBlock, two_barriers_kernel);
  EXPECT_THAT(outcome(), AllOf(HasSubstr("kernel two_barriers_kernel"),
                               HasSubstr("while others of its block wait at")));
}

constexpr unsigned kAll = 0xffffffffU;

__global__ void sum_kernel(int* out, unsigned num_lanes) {
  int value = static_cast<int>(threadIdx.x);
  if (threadIdx.x % 32 < num_lanes) {
    for (int distance = 16; distance > 0; distance /= 2) {
      value += __shfl_xor_sync(kAll, value, distance);
    }
  }
  out[threadIdx.x] = value;
}

TEST_F(CudaOnHost, AShuffleOfAllLanesSums) {
  const DeviceArray<int> out(kThreads);
  launch(stream, kOneBlock, sum_kernel, out.get(), 32U);
  ASSERT_EQ(outcome(), "");
  EXPECT_EQ(out.values()[5], 31 * 32 / 2);
  EXPECT_EQ(out.values()[40], 31 * 32 / 2 + 32 * 32);
}

TEST_F(CudaOnHost, AShuffleUnderDivergenceIsReported) {
  for (int seed = 1; seed <= kNumSeeds; ++seed) {
    use_seed(seed);
    const DeviceArray<int> out(kThreads);
    launch(stream, kOneBlock, sum_kernel, out.get(), 16U);
    EXPECT_THAT(outcome(), AllOf(HasSubstr("kernel sum_kernel"), HasSubstr("__shfl_xor_sync"),
                                 HasSubstr("ended"), HasSubstr("SEED=" + std::to_string(seed))));
  }
}

__global__ void divided_shuffle_kernel(int* out) {
  int value = static_cast<int>(threadIdx.x);
  if (threadIdx.x % 2 == 0) {
    value = __shfl_sync(kAll, value, 0);
  } else {
    value = __shfl_sync(kAll, value, 1);
  }
  out[threadIdx.x] = value;
}

TEST_F(CudaOnHost, AWarpDividedBetweenTwoShufflesIsReported) {
  const DeviceArray<int> out(kThreads);
  launch(stream, kOneBlock, divided_shuffle_kernel, out.get());
  EXPECT_THAT(outcome(), HasSubstr("a warp is divided"));
}

__global__ void wrong_mask_kernel(int* out, unsigned mask, int from) {
  out[threadIdx.x] = __shfl_sync(mask, static_cast<int>(threadIdx.x), from);
}

TEST_F(CudaOnHost, AMaskThatLeavesTheCallerOutIsReported) {
  const DeviceArray<int> out(kThreads);
  launch(stream, kOneBlock, wrong_mask_kernel, out.get(), 0x0000ffffU, 0);
  EXPECT_THAT(outcome(), HasSubstr("is not in the mask 0xffff of its __shfl_sync"));
}

TEST_F(CudaOnHost, AMaskWithLanesThatTheBlockDoesNotHaveIsReported) {
  const DeviceArray<int> out(kThreads);
  launch(stream, {.num_blocks = 1, .block_size = 40}, wrong_mask_kernel, out.get(), kAll, 0);
  EXPECT_THAT(outcome(), HasSubstr("its warp has 8 lanes"));
}

__global__ void read_outside_of_mask_kernel(int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_sync(0xffffU, 1, 20);
}

TEST_F(CudaOnHost, AShuffleFromALaneOutsideOfItsMaskIsReported) {
  const DeviceArray<int> out(kThreads);
  launch(stream, kOneBlock, read_outside_of_mask_kernel, out.get());
  EXPECT_THAT(outcome(), HasSubstr("which mask 0xffff leaves out"));
}

__global__ void neighbour_kernel(int* out, Barrier barrier) {
  int* shared = shared_memory<int>();
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (barrier == Barrier::present) __syncwarp();
  out[threadIdx.x] = shared[threadIdx.x ^ 1U];
}

TEST_F(CudaOnHost, AMissingWarpBarrierSpoilsTheResult) {
  for (int seed = 1; seed <= kNumSeeds; ++seed) {
    use_seed(seed);
    const DeviceArray<int> right(kThreads);
    launch(stream, kOneBlock, neighbour_kernel, right.get(), Barrier::present);
    ASSERT_EQ(outcome(), "");
    const DeviceArray<int> wrong(kThreads);
    launch(stream, kOneBlock, neighbour_kernel, wrong.get(), Barrier::missing);
    ASSERT_EQ(outcome(), "");
    EXPECT_NE(wrong.values(), right.values()) << "seed " << seed;
  }
}

__global__ void sum_shared_kernel(float* out, unsigned num_written) {
  float* shared = shared_memory<float>();
  if (threadIdx.x < num_written) shared[threadIdx.x] = 1.0F;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0F;
    for (unsigned i = 0; i < kThreads; ++i) sum += shared[i];
    out[blockIdx.x] = sum;
  }
}

TEST_F(CudaOnHost, SharedMemoryThatNobodyWroteIsNotANumber) {
  const DeviceArray<float> out(2);
  // The first launch fills all of it; the second must find nothing of that.
  LaunchShape shape = kOneBlock;
  shape.num_blocks = 2;
  launch(stream, shape, sum_shared_kernel, out.get(), kThreads);
  ASSERT_EQ(outcome(), "");
  EXPECT_EQ(out.values(), std::vector<float>(2, kThreads));
  launch(stream, shape, sum_shared_kernel, out.get(), kThreads - 1);
  ASSERT_EQ(outcome(), "");
  EXPECT_TRUE(std::isnan(out.values()[0]) && std::isnan(out.values()[1]));
}

TEST_F(CudaOnHost, TheDeviceRefusesEverythingAfterAFaultUntilItIsReset) {
  launch(stream, kOneBlock, half_block_barrier_kernel);
  EXPECT_NE(outcome(), "");
  float* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_THROW(launch(stream, kOneBlock, half_block_barrier_kernel), std::runtime_error);
  cudaDeviceReset();
  const DeviceArray<int> out(kThreads);
  launch(stream, kOneBlock, sum_kernel, out.get(), 32U);
  EXPECT_EQ(outcome(), "");
}

}  // namespace
}  // namespace redspine
