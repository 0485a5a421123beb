// Broadcasts, messages between two ranks, and calls of all kinds one after another.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "parallel/group/communicator.h"
#include "tensor/error.h"
#include "tests/parallel/group/communicator_ways.h"

namespace redspine::testing {
namespace {

class MixedCalls : public CommunicatorOn {};
INSTANTIATE_TEST_SUITE_P(Ways, MixedCalls, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return way.param.name; });

TEST_P(MixedCalls, ABroadcastBringsWhatTheRootHas) {
  for (const std::int64_t count : {1, 37, 100'003}) {
    for (int root = 0; root < world().size(); ++root) {
      Tensor values = tensor_of(*device, static_cast<std::size_t>(count), 8);
      on(Stream::activations, [&](Stream s) { communicator->broadcast(values, root, s); });
      EXPECT_EQ(from_device(*device, values) == values_of(root, static_cast<std::size_t>(count), 8),
                true)
          << count << " values from rank " << root;
    }
  }
}

// Every rank sends to the next one, those of even number first.
TEST_P(MixedCalls, MessagesGoFromRankToRank) {
  if (world().size() == 1) return;
  const int size = world().size();
  const int next = (world().rank() + 1) % size;
  const int previous = (world().rank() + size - 1) % size;
  for (const Stream stream : kStreams) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{4'321}, std::size_t{3'000'001}}) {
      Tensor mine = tensor_of(*device, count, 2);
      Tensor theirs = tensor_of(*device, count, 2);
      on(stream, [&](Stream s) {
        const bool is_even = world().rank() % 2 == 0;
        if (is_even) communicator->send(mine, next, s);
        communicator->recv(theirs, previous, s);
        if (!is_even) communicator->send(mine, next, s);
      });
      EXPECT_EQ(from_device(*device, theirs) == values_of(previous, count, 2), true) << count;
      EXPECT_EQ(from_device(*device, mine) == values_of(world().rank(), count, 2), true) << count;
    }
  }
}

// Calls of every kind in turn, of few pieces and of many, and ranks that are late.
TEST_P(MixedCalls, CallsOfAllKindsAreKeptApartWhoeverIsLate) {
  constexpr int kNumCalls = 80;
  const auto count_of = [](int call) {
    return static_cast<std::size_t>(1 + call * 7919 % 150'001);
  };
  std::vector<Tensor> tensors;
  for (int call = 0; call < kNumCalls; ++call) {
    tensors.push_back(tensor_of(*device, count_of(call), call));
  }
  const auto root_of = [](int call) { return call % world().size(); };
  device->order(Stream::compute, Stream::activations);
  for (int call = 0; call < kNumCalls; ++call) {
    if (call % (world().size() + 1) == world().rank()) {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * (call % 7)));
    }
    Tensor& values = tensors[static_cast<std::size_t>(call)];
    switch (call * 5 % 7 % 4) {
      case 0:
        communicator->all_reduce(values, ReduceOp::sum, Stream::activations);
        break;
      case 1:
        communicator->broadcast(values, root_of(call), Stream::activations);
        break;
      case 2:
        communicator->reduce_scatter(values, ReduceOp::max, Stream::activations);
        break;
      default:
        communicator->all_gather(values, Stream::activations);
    }
  }
  device->order(Stream::activations, Stream::compute);
  for (int call = 0; call < kNumCalls; ++call) {
    const std::size_t count = count_of(call);
    const auto length = static_cast<std::int64_t>(count);
    std::vector<float> actual = from_device(*device, tensors[static_cast<std::size_t>(call)]);
    std::vector<float> expected;
    switch (call * 5 % 7 % 4) {
      case 0:
        expected = reduced(count, call, ReduceOp::sum);
        break;
      case 1:
        expected = values_of(root_of(call), count, call);
        break;
      case 2: {
        const Range own = partition(length, world().size(), world().rank());
        actual = slice_of(actual, own);
        expected = slice_of(reduced(count, call, ReduceOp::max), own);
        break;
      }
      default:
        for (int r = 0; r < world().size(); ++r) {
          const std::vector<float> share =
              slice_of(values_of(r, count, call), partition(length, world().size(), r));
          expected.insert(expected.end(), share.begin(), share.end());
        }
    }
    EXPECT_EQ(actual == expected, true) << "call " << call;
  }
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_P(MixedCalls, SharesThatAreNotAllOfATensorAreRejected) {
  Tensor values = tensor_of(*device, 10, 0);
  const auto refusal = [&](const Shares& shares) {
    return error_of([&] { communicator->all_gather(values, shares, Stream::compute); });
  };
  Shares shares = partition(10, world().size());
  shares.back().end = 9;
  EXPECT_NE(refusal(shares).find("shares of 9 in all of a tensor with 10"), std::string::npos)
      << refusal(shares);
  shares.front().begin = 1;
  EXPECT_NE(refusal(shares).find("rank 0 has the share [1, "), std::string::npos);
  shares.push_back({10, 10});
  EXPECT_NE(refusal(shares).find("shares of a tensor for"), std::string::npos);
}

TEST_P(MixedCalls, RanksThatAreNotOfTheGroupAreRejected) {
  Tensor values = tensor_of(*device, 10, 0);
  const int self = world().rank();
  EXPECT_NE(error_of([&] {
              communicator->broadcast(values, world().size(), Stream::compute);
            }).find("there is no rank"),
            std::string::npos);
  EXPECT_NE(error_of([&] { communicator->send(values, self, Stream::compute); }).find("to itself"),
            std::string::npos);
  EXPECT_NE(error_of([&] { communicator->recv(values, self, Stream::compute); }).find("to itself"),
            std::string::npos);
}

}  // namespace
}  // namespace redspine::testing
