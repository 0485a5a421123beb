#include "parallel/group/communicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "parallel/mesh/choose_communicator.h"
#include "parallel/nccl/nccl_communicator.h"
#include "tensor/error.h"
#include "tests/parallel/group/communicator_ways.h"
#include "tests/support/far_device.h"
#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Ways, CommunicatorOn, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return way.param.name; });

TEST_P(CommunicatorOn, KnowsItsPlace) {
  EXPECT_EQ(communicator->rank(), world().rank());
  EXPECT_EQ(communicator->size(), world().size());
}

TEST_P(CommunicatorOn, ReducesOnEveryStream) {
  for (const Stream stream : kStreams) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{37}, std::size_t{100'000}}) {
        Tensor values = tensor_of(*device, count, 3);
        device->order(Stream::compute, stream);
        communicator->all_reduce(values, op, stream);
        device->order(stream, Stream::compute);
        EXPECT_EQ(from_device(*device, values) == reduced(count, 3, op), true)
            << count << " values on stream " << static_cast<int>(stream);
      }
    }
  }
}

TEST_P(CommunicatorOn, ReducesEveryDType) {
  const auto expect_sum = [&]<class T>(T one) {
    Tensor values = to_device(*device, std::vector<T>{one, one * 2}, {2});
    communicator->all_reduce(values, ReduceOp::sum, Stream::compute);
    const auto size = static_cast<T>(world().size());
    EXPECT_EQ(from_device<T>(*device, values), (std::vector<T>{one * size, one * 2 * size}));
  };
  expect_sum(1.5F);
  expect_sum(0x1p600);
  expect_sum(std::int32_t{-3});
  expect_sum(std::int64_t{1} << 50);
}

// NCCL rounds on each rank of its ring.
TEST_P(CommunicatorOn, RoundsASumOfBf16OnceOnTheWayThroughTheHost) {
  const auto size = static_cast<float>(world().size());
  // 1 and 1/256 are both bf16, their sum is not: what is rounded at each addition stays 1.
  const float mine = world().rank() == 0 ? 1.0F : 0x1p-8F;
  Tensor values = to_device(*device, std::vector<BFloat16>{BFloat16(mine)}, {1});
  device->order(Stream::compute, Stream::gradients);
  communicator->all_reduce(values, ReduceOp::sum, Stream::gradients);
  device->order(Stream::gradients, Stream::compute);
  const auto sum = static_cast<float>(from_device<BFloat16>(*device, values)[0]);
  const auto expected = static_cast<float>(BFloat16(1.0F + (size - 1.0F) * 0x1p-8F));
  const bool is_nccl = GetParam().collectives == CollectiveBackend::nccl;
  EXPECT_NEAR(sum, expected, is_nccl ? size * 0x1p-8F : 0.0F);
}

TEST(MpiCommunicator, NamesLengthsThatDifferBetweenTheRanksOfAHost) {
  if (world().size() == 1) return;
  const auto device = make_cpu_device(1);
  const auto communicator = make_communicator(world(), *device, CollectiveBackend::mpi);
  Tensor values = tensor_of(*device, world().rank() == 0 ? 11 : 10, 1);
  try {
    communicator->all_reduce(values, ReduceOp::sum, Stream::compute);
    FAIL() << "calls that differ were accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("44"), std::string::npos) << text;
    EXPECT_NE(text.find("40"), std::string::npos) << text;
  }
}

TEST_P(CommunicatorOn, TakesALongBufferInPieces) {
  constexpr std::size_t kCount = 5'000'001;
  Tensor values = tensor_of(*device, kCount, 9);
  device->order(Stream::compute, Stream::gradients);
  communicator->all_reduce(values, ReduceOp::sum, Stream::gradients);
  device->order(Stream::gradients, Stream::compute);
  EXPECT_EQ(from_device(*device, values) == reduced(kCount, 9, ReduceOp::sum), true);
}

// Ranks that are late at other calls each, as those of a step are.
TEST_P(CommunicatorOn, KeepsCallsApartWhoeverIsLate) {
  constexpr int kNumCalls = 120;
  std::vector<Tensor> tensors;
  for (int call = 0; call < kNumCalls; ++call) {
    const auto count = static_cast<std::size_t>(1 + call * 7919 % 200'003);
    tensors.push_back(tensor_of(*device, count, call));
  }
  for (int call = 0; call < kNumCalls; ++call) {
    if (call % (world().size() + 1) == world().rank()) {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * (call % 7)));
    }
    communicator->all_reduce(tensors[static_cast<std::size_t>(call)], ReduceOp::sum,
                             Stream::activations);
  }
  device->synchronize(Stream::activations);
  for (int call = 0; call < kNumCalls; ++call) {
    const Tensor& tensor = tensors[static_cast<std::size_t>(call)];
    EXPECT_EQ(from_device(*device, tensor) ==
                  reduced(static_cast<std::size_t>(tensor.count()), call, ReduceOp::sum),
              true)
        << "call " << call;
  }
}

TEST_P(CommunicatorOn, AnEmptyViewIsReducedToNothing) {
  Tensor nothing(*device, DType::f32, {0});
  communicator->all_reduce(nothing, ReduceOp::sum, Stream::gradients);
  device->synchronize(Stream::gradients);
}

// Ranks may come to the two streams in different orders: only the order on each stream is agreed,
// once each has been used.
TEST_P(CommunicatorOn, StreamsAreIndependentOfOneAnother) {
  for (const Stream stream : {Stream::activations, Stream::gradients}) {
    Tensor first = tensor_of(*device, 1, 0);
    device->order(Stream::compute, stream);
    communicator->all_reduce(first, ReduceOp::sum, stream);
    device->synchronize(stream);
  }
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
    device->order(Stream::compute, stream);
    for (Tensor& values : tensors[static_cast<int>(stream)]) {
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

TEST_P(CommunicatorOn, EndsWhatItWasGivenBeforeItGoes) {
  Tensor values = tensor_of(*device, 50'000, 1);
  device->order(Stream::compute, Stream::gradients);
  communicator->all_reduce(values, ReduceOp::sum, Stream::gradients);
  communicator = nullptr;
  EXPECT_EQ(from_device(*device, values) == reduced(50'000, 1, ReduceOp::sum), true);
}

std::string refusal(const Device& device, CollectiveBackend requested) {
  try {
    choose_collective_backend(world(), device, requested);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(CollectiveBackend, NcclIsRejectedWhereItCannotBe) {
  EXPECT_EQ(refusal(*make_cpu_device(1), CollectiveBackend::nccl),
            "run.collectives: is nccl, but the ranks compute on CPUs; legal here: auto, mpi");
  EXPECT_EQ(refusal(*make_cpu_device(1), CollectiveBackend::automatic), "");
  if (!nccl_version().empty()) return;
  EXPECT_EQ(refusal(FarDevice(), CollectiveBackend::nccl),
            "run.collectives: is nccl, but NCCL is not in this build; legal here: auto, mpi");
}

TEST(CollectiveBackend, RanksThatShareAGpuUseMpi) {
  const FarDevice device;
  EXPECT_EQ(choose_collective_backend(world(), device, CollectiveBackend::automatic),
            CollectiveBackend::mpi);
  if (nccl_version().empty() || world().size() == 1) return;
  EXPECT_NE(
      refusal(device, CollectiveBackend::nccl).find("ranks 0 and 1 share the GPU 0000:00:00.0 of "),
      std::string::npos);
}

}  // namespace
}  // namespace redspine::testing
