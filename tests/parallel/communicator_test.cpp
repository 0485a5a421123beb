#include "parallel/communicator.h"

#include <gtest/gtest.h>

#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

constexpr Stream kStreams[] = {Stream::compute, Stream::activations, Stream::gradients};

// Small whole numbers, so that every sum is exact.
std::vector<float> values_of(int rank, std::size_t count, int salt) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((static_cast<int>(i) * 7 + rank * 31 + salt) % 101 - 50);
  }
  return values;
}

std::vector<float> reduced(std::size_t count, int salt, ReduceOp op) {
  std::vector<float> result = values_of(0, count, salt);
  for (int rank = 1; rank < world().size(); ++rank) {
    const std::vector<float> values = values_of(rank, count, salt);
    for (std::size_t i = 0; i < count; ++i) {
      result[i] = op == ReduceOp::sum ? result[i] + values[i] : std::max(result[i], values[i]);
    }
  }
  return result;
}

Tensor tensor_of(Device& device, std::size_t count, int salt) {
  return to_device(device, values_of(world().rank(), count, salt),
                   {static_cast<std::int64_t>(count)});
}

TEST(Communicator, KnowsItsPlace) {
  const auto device = make_cpu_device(1);
  const auto communicator = make_communicator(world(), *device);
  EXPECT_EQ(communicator->rank(), world().rank());
  EXPECT_EQ(communicator->size(), world().size());
}

TEST(Communicator, ReducesOnEveryStream) {
  const auto device = make_cpu_device(1);
  const auto communicator = make_communicator(world(), *device);
  for (const Stream stream : kStreams) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{37}, std::size_t{100'000}}) {
        const Tensor values = tensor_of(*device, count, 3);
        device->order(Stream::compute, stream);
        communicator->all_reduce(values, op, stream);
        device->order(stream, Stream::compute);
        EXPECT_EQ(from_device(*device, values) == reduced(count, 3, op), true)
            << count << " values on stream " << static_cast<int>(stream);
      }
    }
  }
}

TEST(Communicator, ReducesEveryDType) {
  const auto device = make_cpu_device(1);
  const auto communicator = make_communicator(world(), *device);
  const auto expect_sum = [&]<class T>(T one) {
    const Tensor values = to_device(*device, std::vector<T>{one, one * 2}, {2});
    communicator->all_reduce(values, ReduceOp::sum, Stream::compute);
    const auto size = static_cast<T>(world().size());
    EXPECT_EQ(from_device<T>(*device, values), (std::vector<T>{one * size, one * 2 * size}));
  };
  expect_sum(1.5F);
  expect_sum(1e200);
  expect_sum(std::int32_t{-3});
  expect_sum(std::int64_t{1} << 50);
}

TEST(Communicator, AnEmptyViewIsReducedToNothing) {
  const auto device = make_cpu_device(1);
  const auto communicator = make_communicator(world(), *device);
  const Tensor nothing(*device, DType::f32, {0});
  communicator->all_reduce(nothing, ReduceOp::sum, Stream::gradients);
  device->synchronize(Stream::gradients);
}

// Ranks may come to the two streams in different orders: only the order on each stream is agreed.
TEST(Communicator, StreamsAreIndependentOfOneAnother) {
  const auto device = make_cpu_device(1);
  const auto communicator = make_communicator(world(), *device);
  constexpr int kNumCalls = 40;
  const auto count_of = [](Stream stream, int call) {
    return static_cast<std::size_t>(stream == Stream::gradients ? 5000 + call : 17 + call);
  };
  std::vector<Tensor> tensors[kNumStreams];
  for (const Stream stream : {Stream::activations, Stream::gradients}) {
    for (int call = 0; call < kNumCalls; ++call) {
      tensors[static_cast<int>(stream)].push_back(tensor_of(*device, count_of(stream, call), call));
    }
  }
  const bool gradients_first = world().rank() % 2 == 1;
  for (const Stream stream : {gradients_first ? Stream::gradients : Stream::activations,
                              gradients_first ? Stream::activations : Stream::gradients}) {
    for (const Tensor& values : tensors[static_cast<int>(stream)]) {
      communicator->all_reduce(values, ReduceOp::sum, stream);
    }
  }
  for (const Stream stream : {Stream::activations, Stream::gradients}) {
    device->synchronize(stream);
    for (int call = 0; call < kNumCalls; ++call) {
      const Tensor& values = tensors[static_cast<int>(stream)][static_cast<std::size_t>(call)];
      EXPECT_EQ(
          from_device(*device, values) == reduced(count_of(stream, call), call, ReduceOp::sum),
          true)
          << "call " << call << " on stream " << static_cast<int>(stream);
    }
  }
}

TEST(Communicator, EndsWhatItWasGivenBeforeItGoes) {
  const auto device = make_cpu_device(1);
  const Tensor values = tensor_of(*device, 50'000, 1);
  make_communicator(world(), *device)->all_reduce(values, ReduceOp::sum, Stream::gradients);
  EXPECT_EQ(from_device(*device, values) == reduced(50'000, 1, ReduceOp::sum), true);
}

}  // namespace
}  // namespace redspine::testing
