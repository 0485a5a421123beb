// The CPU device: memory, copies, and the order of its streams.
#include "tensor/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tensor/error.h"
#include "tensor/host_stream.h"
#include "tensor/tensor.h"
#include "tests/tensor/any_device.h"

namespace redspine {

std::unique_ptr<Device> testing::make_device_under_test() { return make_cpu_device(2); }

namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;

TEST(HostStream, RunsFunctionsInTheOrderOfEnqueueing) {
  HostStream stream;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) stream.enqueue([&seen, i] { seen.push_back(i); });
  stream.wait();
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(HostStream, RunsInAThreadOfItsOwnWhileNobodyWaits) {
  HostStream stream;
  std::promise<std::thread::id> id;
  stream.enqueue([&id] { id.set_value(std::this_thread::get_id()); });
  EXPECT_NE(id.get_future().get(), std::this_thread::get_id());
}

TEST(HostStream, DoesWhatItsThreadHasNotBegunInTheOneThatWaits) {
  HostStream stream;
  std::thread::id id;
  // The thread may be the faster one, but hardly always.
  for (int i = 0; i < 10000 && id != std::this_thread::get_id(); ++i) {
    stream.enqueue([&id] { id = std::this_thread::get_id(); });
    stream.wait();
  }
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(HostStream, RunsOneFunctionAtATimeInOrderWhoeverDoesIt) {
  HostStream stream;
  std::atomic<int> num_running = 0;
  int most_running = 0;
  std::vector<int> seen;
  std::vector<int> expected;
  for (int i = 0; i < 300; ++i) {
    stream.enqueue([&, i] {
      most_running = std::max(most_running, ++num_running);
      seen.push_back(i);
      std::this_thread::sleep_for(100us);  // time enough for the other one to begin the next
      --num_running;
    });
    expected.push_back(i);
    if (i % 3 == 0) stream.wait();
  }
  stream.wait();
  EXPECT_EQ(most_running, 1);
  EXPECT_EQ(seen, expected);
}

TEST(HostStream, WaitsWithoutWork) {
  HostStream stream;
  stream.wait();
  EXPECT_EQ(stream.tail(), 0U);
}

TEST(HostStream, ReportsTheFirstExceptionOnceAndDropsWhatWasQueuedBehindIt) {
  HostStream stream;
  bool ran = false;
  stream.enqueue([] { throw std::runtime_error("first"); });
  stream.enqueue([] { throw std::runtime_error("second"); });
  stream.enqueue([&ran] { ran = true; });
  try {
    stream.wait();
    FAIL() << "the exception was lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_FALSE(ran);
  stream.wait();
  stream.enqueue([&ran] { ran = true; });
  stream.wait();
  EXPECT_TRUE(ran);
}

TEST(HostStream, RunsWhatIsLeftWhenItEnds) {
  int count = 0;
  {
    HostStream stream;
    stream.enqueue([] { std::this_thread::sleep_for(5ms); });
    for (int i = 0; i < 10; ++i) stream.enqueue([&count] { ++count; });
  }
  EXPECT_EQ(count, 10);
}

TEST(HostStream, ReleasesWhatAFunctionCapturedBeforeWaitReturns) {
  HostStream stream;
  auto token = std::make_shared<int>(1);
  stream.enqueue([token] {});
  stream.wait();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(CpuDevice, ComputeRunsAtOnceInTheCallingThread) {
  const auto device = make_cpu_device(1);
  std::thread::id id;
  device->enqueue(Stream::compute, [&id] { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
  EXPECT_THROW(device->enqueue(Stream::compute, [] { throw Error("now"); }), Error);
}

TEST(CpuDevice, ComputeWaitsForAStreamThatIsOrderedBeforeIt) {
  const auto device = make_cpu_device(1);
  int value = 0;
  device->enqueue(Stream::activations, [&value] {
    std::this_thread::sleep_for(5ms);
    value = 1;
  });
  device->order(Stream::activations, Stream::compute);
  EXPECT_EQ(value, 1);
}

TEST(CpuDevice, OneStreamWaitsForWhatTheOtherWasGivenBeforeAndForNoMore) {
  const auto device = make_cpu_device(1);
  std::atomic<bool> release = false;
  int before = 0;
  int seen = -1;
  device->enqueue(Stream::gradients, [&before] {
    std::this_thread::sleep_for(5ms);
    before = 1;
  });
  device->order(Stream::gradients, Stream::activations);
  device->enqueue(Stream::gradients, [&release] {
    while (!release) std::this_thread::sleep_for(1ms);
  });
  device->enqueue(Stream::activations, [&] { seen = before; });
  device->synchronize(Stream::activations);  // the second function of `gradients` still runs
  EXPECT_EQ(seen, 1);
  release = true;
  device->synchronize(Stream::gradients);
}

TEST(CpuDevice, StreamsMayWaitForEachOtherInTurns) {
  const auto device = make_cpu_device(1);
  int turns = 0;
  for (int i = 0; i < 200; ++i) {
    device->enqueue(Stream::activations, [&turns, i] { turns += turns == 2 * i ? 1 : 0; });
    device->order(Stream::activations, Stream::gradients);
    device->enqueue(Stream::gradients, [&turns, i] { turns += turns == 2 * i + 1 ? 1 : 0; });
    device->order(Stream::gradients, Stream::activations);
  }
  device->synchronize(Stream::activations);
  device->synchronize(Stream::gradients);
  EXPECT_EQ(turns, 400);
}

TEST(CpuDevice, RethrowsTheExceptionOfAStreamWhereComputeWaitsForIt) {
  const auto device = make_cpu_device(1);
  device->enqueue(Stream::gradients, [] { throw Error("peer gone"); });
  device->order(Stream::gradients, Stream::activations);
  bool ran = false;
  device->enqueue(Stream::activations, [&ran] { ran = true; });
  EXPECT_THROW(device->synchronize(Stream::activations), Error);
  EXPECT_THROW(device->order(Stream::gradients, Stream::compute), Error);
  EXPECT_FALSE(ran);
}

TEST(CpuDevice, EndsWhileOneStreamWaitsForAnother) {
  int done = 0;
  {
    const auto device = make_cpu_device(1);
    device->enqueue(Stream::gradients, [] { std::this_thread::sleep_for(5ms); });
    device->order(Stream::gradients, Stream::activations);
    device->enqueue(Stream::activations, [&done] { ++done; });
  }
  EXPECT_EQ(done, 1);
}

TEST(CpuDevice, ZeroesMemoryThatWasUsedBefore) {
  const auto device = make_cpu_device(2);
  for (int round = 0; round < 3; ++round) {
    Tensor tensor(*device, DType::i32, {300'000});
    auto* data = tensor.view().data<std::int32_t>();
    EXPECT_EQ(std::count(data, data + 300'000, 0), 300'000);
    std::fill(data, data + 300'000, 7);
    device->zero(tensor.view().slice(1, 299'998));
    EXPECT_EQ(data[0], 7);
    EXPECT_EQ(data[299'999], 7);
    EXPECT_EQ(std::count(data, data + 300'000, 0), 299'998);
    std::fill(data, data + 300'000, 7);
  }
}

TEST(CpuDevice, DescribesItself) {
  EXPECT_EQ(make_cpu_device(1)->description().substr(0, 5), "cpu: ");
  EXPECT_NE(make_cpu_device(3)->description().find(", 3 threads"), std::string::npos);
}

TEST(CpuDevice, RejectsZeroThreads) { EXPECT_THROW(make_cpu_device(0), Error); }

}  // namespace
}  // namespace redspine
