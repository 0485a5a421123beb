// Accesses beside one's own memory, and launches and copies that no device accepts.
#include <gmock/gmock.h>

#include <cmath>

#include "tensor/cuda/launch.h"
#include "tests/cuda_on_host/device_fixture.h"

namespace redspine {
namespace {

using ::testing::HasSubstr;

constexpr int kCount = 100;  // whose end is on no boundary of anything

__global__ void fill_kernel(float* out, int first, int last) {
  const int i = first + static_cast<int>(threadIdx.x);
  if (i < last) out[i] = 1.0F;
}

// AddressSanitizer ends the program at the access itself; without it the device tells afterwards.
template <class Enqueue, class Outcome>
void expect_caught(const Enqueue& enqueue, const Outcome& outcome,
                   [[maybe_unused]] const std::string& text) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((enqueue(), outcome()), "AddressSanitizer: use-after-poison");
#else
  enqueue();
  EXPECT_THAT(outcome(), HasSubstr(text));
#endif
}

TEST_F(CudaOnHost, AWriteByOneElementBehindAnAllocationIsReported) {
  const DeviceArray<float> before(kCount);
  const DeviceArray<float> array(kCount);
  launch(stream, {.num_blocks = 1, .block_size = 128}, fill_kernel, array.get(), 0, kCount);
  ASSERT_EQ(outcome(), "");
  EXPECT_EQ(array.values(), std::vector<float>(kCount, 1.0F));
  expect_caught(
      [&] {
        launch(stream, {.num_blocks = 1, .block_size = 128}, fill_kernel, array.get(), 0,
               kCount + 1);
      },
      [&] { return outcome(); }, "kernel fill_kernel wrote behind an allocation of 400 bytes");
}

TEST_F(CudaOnHost, AWriteByOneElementBeforeAnAllocationIsReported) {
  const DeviceArray<float> array(kCount);
  expect_caught(
      [&] {
        launch(stream, {.num_blocks = 1, .block_size = 128}, fill_kernel, array.get(), -1, kCount);
      },
      [&] { return outcome(); }, "kernel fill_kernel wrote before an allocation of 400 bytes");
}

__global__ void fill_shared_kernel(int count) {
  float* shared = shared_memory<float>();
  for (int i = 0; i < count; ++i) shared[i] = 1.0F;
}

TEST_F(CudaOnHost, AWriteByOneElementBehindSharedMemoryIsReported) {
  const LaunchShape shape{
      .num_blocks = 1, .block_size = 1, .shared_bytes = std::size_t{kCount} * 4};
  launch(stream, shape, fill_shared_kernel, kCount);
  ASSERT_EQ(outcome(), "");
  expect_caught([&] { launch(stream, shape, fill_shared_kernel, kCount + 1); },
                [&] { return outcome(); },
                "kernel fill_shared_kernel, block (0,0,0): wrote behind its 400 bytes");
}

TEST_F(CudaOnHost, AHostPointerGivenToAKernelIsReported) {
  std::vector<float> host(kCount);
  launch(stream, {.num_blocks = 1, .block_size = 128}, fill_kernel, host.data(), 0, kCount);
  EXPECT_THAT(outcome(), HasSubstr("kernel fill_kernel: argument 1 points to no device memory"));
}

struct Target {
  int count;
  float* out;
};

__global__ void fill_target_kernel(Target target) {
  if (static_cast<int>(threadIdx.x) < target.count) target.out[threadIdx.x] = 1.0F;
}

TEST_F(CudaOnHost, APointerToFreedMemoryWithinAnArgumentIsReported) {
  Target target{.count = kCount, .out = nullptr};
  {
    const DeviceArray<float> array(kCount);
    target.out = array.get();
    launch(stream, {.num_blocks = 1, .block_size = 128}, fill_target_kernel, target);
    EXPECT_EQ(outcome(), "");
  }
  launch(stream, {.num_blocks = 1, .block_size = 128}, fill_target_kernel, target);
  EXPECT_THAT(outcome(), HasSubstr("argument 1 points to no device memory"));
}

TEST_F(CudaOnHost, MemoryThatNobodyWroteIsNotANumber) {
  const DeviceArray<float> array(kCount);
  for (float value : array.values()) EXPECT_TRUE(std::isnan(value));
}

TEST_F(CudaOnHost, ALaunchThatNoDeviceAcceptsIsRefused) {
  const DeviceArray<float> array(kCount);
  for (const LaunchShape& shape : {
           LaunchShape{.num_blocks = 0, .block_size = 32},
           LaunchShape{.num_blocks = 1, .block_size = 0},
           LaunchShape{.num_blocks = 1, .block_size = 1025},
           LaunchShape{.num_blocks = 1, .block_size = dim3(64, 32)},
           LaunchShape{.num_blocks = 1, .block_size = dim3(1, 1, 65)},
           LaunchShape{.num_blocks = dim3(1, 65536), .block_size = 32},
           LaunchShape{.num_blocks = 1, .block_size = 32, .shared_bytes = 48 * 1024 + 1},
       }) {
    EXPECT_THROW(launch(stream, shape, fill_kernel, array.get(), 0, kCount), std::runtime_error);
  }
  EXPECT_EQ(outcome(), "");
}

TEST_F(CudaOnHost, CopiesMustNameTheirDirectionAndStayWithinAnAllocation) {
  const DeviceArray<float> array(kCount);
  std::vector<float> host(kCount + 1);
  const std::size_t bytes = kCount * sizeof(float);
  EXPECT_EQ(cudaMemcpy(array.get(), host.data(), bytes, cudaMemcpyDeviceToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), array.get(), bytes, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(array.get(), host.data(), bytes + 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(array.get() + 1, 0, bytes), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(array.get(), 0, bytes), cudaSuccess);
}

TEST_F(CudaOnHost, MemoryIsCountedAndEnds) {
  std::size_t free_before = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free_before, &total);
  {
    const DeviceArray<float> array(kCount);
    std::size_t free_now = 0;
    cudaMemGetInfo(&free_now, &total);
    EXPECT_EQ(free_before - free_now, kCount * sizeof(float));
  }
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(&total), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace redspine
