// Streams run in any order that events allow: what events do not order goes wrong for some seed.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tensor/cuda/launch.h"
#include "tests/cuda_on_host/device_fixture.h"

namespace redspine {
namespace {

constexpr int kNumSeeds = 20;

__global__ void add_one_kernel(int* value) { *value += 1; }
__global__ void double_kernel(int* value) { *value *= 2; }

class TwoStreams : public CudaOnHost {
 protected:
  TwoStreams() {
    check_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~TwoStreams() override {
    unsetenv(kPatience);
    cudaStreamDestroy(other);
    cudaEventDestroy(event);
  }

  /// A slow machine must not let deferred work start by itself.
  static void be_patient() {
    setenv(kPatience, "600000", 1);
    cudaDeviceReset();
  }

  enum class Order { by_event, forgotten };

  // (3 + 1) * 2, where the doubling is in another stream.
  int add_then_double(Order order) const {
    const DeviceArray<int> value(std::vector<int>{3});
    launch(stream, {.num_blocks = 1, .block_size = 1}, add_one_kernel, value.get());
    if (order == Order::by_event) {
      check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
      check_cuda(cudaStreamWaitEvent(other, event), "cudaStreamWaitEvent");
    }
    launch(other, {.num_blocks = 1, .block_size = 1}, double_kernel, value.get());
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return value.values().front();
  }

  static constexpr const char* kPatience = "REDSPINE_ON_HOST_PATIENCE_MILLISECONDS";

  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
};

TEST_F(TwoStreams, UseBeforeTheEventThatOrdersItIsFoundBySomeSeed) {
  int num_wrong = 0;
  for (int seed = 1; seed <= kNumSeeds; ++seed) {
    use_seed(seed);
    EXPECT_EQ(add_then_double(Order::by_event), 8) << "seed " << seed;
    num_wrong += add_then_double(Order::forgotten) != 8 ? 1 : 0;
  }
  EXPECT_GT(num_wrong, 0);
  EXPECT_LT(num_wrong, kNumSeeds);
}

TEST_F(TwoStreams, NothingRunsBeforeSomebodyWaits) {
  be_patient();
  const DeviceArray<int> value(std::vector<int>{3});
  launch(stream, {.num_blocks = 1, .block_size = 1}, add_one_kernel, value.get());
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(outcome(), "");
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

TEST_F(TwoStreams, WorkThatNobodyWaitsForIsDoneAfterAWhile) {
  const DeviceArray<int> value(std::vector<int>{3});
  launch(stream, {.num_blocks = 1, .block_size = 1}, add_one_kernel, value.get());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The source is read when the copy runs, not when it is given: it may not be reused before that.
TEST_F(TwoStreams, ACopyFromPinnedMemoryReadsItLater) {
  be_patient();
  int* pinned = nullptr;
  check_cuda(cudaHostAlloc(reinterpret_cast<void**>(&pinned), sizeof(int), cudaHostAllocDefault),
             "cudaHostAlloc");
  *pinned = 3;
  const DeviceArray<int> value(1);
  cudaMemcpyAsync(value.get(), pinned, sizeof(int), cudaMemcpyHostToDevice, stream);
  *pinned = 4;
  ASSERT_EQ(outcome(), "");
  EXPECT_EQ(value.values().front(), 4);
  cudaFreeHost(pinned);
}

TEST_F(TwoStreams, ACopyFromOrdinaryMemoryHasReadItWhenTheCallReturns) {
  int host = 3;
  const DeviceArray<int> value(1);
  cudaMemcpyAsync(value.get(), &host, sizeof(int), cudaMemcpyHostToDevice, stream);
  host = 4;
  ASSERT_EQ(outcome(), "");
  EXPECT_EQ(value.values().front(), 3);
}

TEST_F(TwoStreams, AnEventIsDoneWhenItsStreamCameThere) {
  be_patient();
  const DeviceArray<int> value(std::vector<int>{3});
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // never recorded
  launch(stream, {.num_blocks = 1, .block_size = 1}, add_one_kernel, value.get());
  check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(value.values().front(), 4);
}

}  // namespace
}  // namespace redspine
