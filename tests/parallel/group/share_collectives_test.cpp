// Collectives of shares, broadcasts and messages, each way and on any number of ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "parallel/group/communicator.h"
#include "tensor/error.h"
#include "tests/parallel/group/communicator_ways.h"

namespace redspine::testing {
namespace {

class ShareCollectives : public CommunicatorOn {
 protected:
  /// Runs `call(stream)` between the compute stream's work before and after it.
  template <class Call>
  void on(Stream stream, const Call& call) {
    device->order(Stream::compute, stream);
    call(stream);
    device->order(stream, Stream::compute);
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, ShareCollectives, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return way.param.name; });

using Shares = std::vector<Range>;

// Even shares; all with one rank; none for the first and the last; and sizes far apart.
std::vector<Shares> shares_of(std::int64_t count) {
  const int num_ranks = world().size();
  std::vector<Shares> all = {partition(count, num_ranks)};
  for (const int owner : {0, num_ranks - 1}) {
    Shares one(static_cast<std::size_t>(num_ranks), {0, 0});
    for (int r = owner; r < num_ranks; ++r) {
      one[static_cast<std::size_t>(r)] = {r == owner ? 0 : count, count};
    }
    all.push_back(one);
  }
  if (num_ranks > 2) {
    Shares inner = {{0, 0}};
    for (const Range& part : partition(count, num_ranks - 2)) inner.push_back(part);
    inner.push_back({count, count});
    all.push_back(inner);
  }
  Shares halves;
  std::int64_t begin = 0;
  for (int r = 0; r < num_ranks; ++r) {
    const std::int64_t end = r + 1 == num_ranks ? count : begin + (count - begin) / 2;
    halves.push_back({begin, end});
    begin = end;
  }
  all.push_back(halves);
  return all;
}

constexpr std::int64_t kCounts[] = {1, 37, 100'003};

template <class T>
std::vector<T> as(const std::vector<float>& values) {
  std::vector<T> converted;
  for (const float value : values) converted.push_back(static_cast<T>(value));
  return converted;
}

// Exact in every dtype, also the sums.
template <class T>
std::vector<T> typed_values(int rank, std::int64_t count) {
  std::vector<float> values = values_of(rank, static_cast<std::size_t>(count), 5);
  for (float& value : values) value = static_cast<float>(static_cast<int>(value) % 16);
  return as<T>(values);
}

template <class Check>
void for_each_dtype(const Check& check) {
  check(float{});
  check(double{});
  check(std::int32_t{});
  check(std::int64_t{});
  check(BFloat16{});
}

template <class T>
bool has_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
std::vector<T> slice_of(const std::vector<T>& values, const Range& range) {
  return {values.begin() + range.begin, values.begin() + range.end};
}

TEST_P(ShareCollectives, AnAllGatherBringsTheShareOfEveryRank) {
  for (const std::int64_t count : kCounts) {
    for (const Shares& shares : shares_of(count)) {
      for (const Stream stream : kStreams) {
        const Tensor values = tensor_of(*device, static_cast<std::size_t>(count), 3);
        on(stream, [&](Stream s) { communicator->all_gather(values, shares, s); });
        const std::vector<float> gathered = from_device(*device, values);
        for (int r = 0; r < world().size(); ++r) {
          const Range& share = shares[static_cast<std::size_t>(r)];
          EXPECT_EQ(slice_of(gathered, share) ==
                        slice_of(values_of(r, static_cast<std::size_t>(count), 3), share),
                    true)
              << count << " values, rank " << r << ", stream " << static_cast<int>(stream);
        }
      }
    }
  }
}

TEST_P(ShareCollectives, AReduceScatterGivesEachRankItsShare) {
  for (const std::int64_t count : kCounts) {
    for (const Shares& shares : shares_of(count)) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        const Tensor values = tensor_of(*device, static_cast<std::size_t>(count), 3);
        on(Stream::gradients,
           [&](Stream s) { communicator->reduce_scatter(values, shares, op, s); });
        const Range& own = shares[static_cast<std::size_t>(world().rank())];
        EXPECT_EQ(slice_of(from_device(*device, values), own) ==
                      slice_of(reduced(static_cast<std::size_t>(count), 3, op), own),
                  true)
            << count << " values";
      }
    }
  }
}

TEST_P(ShareCollectives, ServeEveryDType) {
  constexpr std::int64_t kCount = 1001;
  const Range own = partition(kCount, world().size(), world().rank());
  for_each_dtype([&]<class T>(T) {
    std::vector<T> all_gathered;
    std::vector<float> sums(kCount);
    for (int r = 0; r < world().size(); ++r) {
      const std::vector<T> theirs = typed_values<T>(r, kCount);
      const std::vector<T> share = slice_of(theirs, partition(kCount, world().size(), r));
      all_gathered.insert(all_gathered.end(), share.begin(), share.end());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(theirs[i]);
    }
    const auto fresh = [&] {
      return to_device(*device, typed_values<T>(world().rank(), kCount), {kCount});
    };
    const Tensor gathered = fresh();
    on(Stream::activations, [&](Stream s) { communicator->all_gather(gathered, s); });
    EXPECT_TRUE(has_same_bits(from_device<T>(*device, gathered), all_gathered));

    const Tensor scattered = fresh();
    on(Stream::activations,
       [&](Stream s) { communicator->reduce_scatter(scattered, ReduceOp::sum, s); });
    EXPECT_TRUE(has_same_bits(slice_of(from_device<T>(*device, scattered), own),
                              slice_of(as<T>(sums), own)));

    const Tensor cast = fresh();
    const int root = world().size() - 1;
    on(Stream::activations, [&](Stream s) { communicator->broadcast(cast, root, s); });
    EXPECT_TRUE(has_same_bits(from_device<T>(*device, cast), typed_values<T>(root, kCount)));
  });
}

// Where ranks are added up in one order. NCCL and its ranks may add in another one.
TEST_P(ShareCollectives, AReduceScatterHasTheBitsOfAnAllReduce) {
  if (GetParam().collectives == CollectiveBackend::nccl) return;
  const auto check = [&]<class T>(T, std::int64_t count) {
    const std::vector<float> random =
        random_values(count, static_cast<unsigned>(world().rank()) + 1);
    for (const Shares& shares : shares_of(count)) {
      const Tensor whole = to_device(*device, as<T>(random), {count});
      const Tensor share = to_device(*device, as<T>(random), {count});
      on(Stream::gradients, [&](Stream s) { communicator->all_reduce(whole, ReduceOp::sum, s); });
      on(Stream::gradients,
         [&](Stream s) { communicator->reduce_scatter(share, shares, ReduceOp::sum, s); });
      const Range& own = shares[static_cast<std::size_t>(world().rank())];
      EXPECT_TRUE(has_same_bits(slice_of(from_device<T>(*device, share), own),
                                slice_of(from_device<T>(*device, whole), own)))
          << count << " values";
    }
  };
  for (const std::int64_t count : {std::int64_t{5}, std::int64_t{3'001}, std::int64_t{400'003}}) {
    check(float{}, count);
    check(double{}, count);
    check(BFloat16{}, count);
  }
}

// bf16: 1 and 1/256 have no sum that is bf16, so rounding at each addition would give 1.
TEST_P(ShareCollectives, AReduceScatterRoundsBf16OnceOnTheWayThroughTheHost) {
  if (GetParam().collectives == CollectiveBackend::nccl) return;
  const float mine = world().rank() == 0 ? 1.0F : 0x1p-8F;
  const std::int64_t count = world().size();
  const std::vector<BFloat16> values(static_cast<std::size_t>(count), BFloat16(mine));
  const Tensor tensor = to_device(*device, values, {count});
  on(Stream::gradients, [&](Stream s) { communicator->reduce_scatter(tensor, ReduceOp::sum, s); });
  const auto sum = static_cast<float>(
      from_device<BFloat16>(*device, tensor)[static_cast<std::size_t>(world().rank())]);
  EXPECT_EQ(sum,
            static_cast<float>(BFloat16(1.0F + static_cast<float>(world().size() - 1) * 0x1p-8F)));
}

TEST_P(ShareCollectives, SharesAreRowsOfAMatrix) {
  const std::int64_t rows = 2 * world().size() + 1;
  constexpr std::int64_t kCols = 3;
  const auto count = static_cast<std::size_t>(rows * kCols);
  const Tensor values = to_device(*device, values_of(world().rank(), count, 1), {rows, kCols});
  on(Stream::activations, [&](Stream s) { communicator->all_gather(values, s); });
  const std::vector<float> gathered = from_device(*device, values);
  for (int r = 0; r < world().size(); ++r) {
    const Range part = partition(rows, world().size(), r);
    const Range elements{part.begin * kCols, part.end * kCols};
    EXPECT_EQ(slice_of(gathered, elements), slice_of(values_of(r, count, 1), elements));
  }
}

TEST_P(ShareCollectives, ABroadcastBringsWhatTheRootHas) {
  for (const std::int64_t count : kCounts) {
    for (int root = 0; root < world().size(); ++root) {
      const Tensor values = tensor_of(*device, static_cast<std::size_t>(count), 8);
      on(Stream::activations, [&](Stream s) { communicator->broadcast(values, root, s); });
      EXPECT_EQ(from_device(*device, values) == values_of(root, static_cast<std::size_t>(count), 8),
                true)
          << count << " values from rank " << root;
    }
  }
}

TEST_P(ShareCollectives, TakeLongBuffersInPieces) {
  constexpr std::size_t kCount = 5'000'001;
  const Range own = partition(kCount, world().size(), world().rank());
  const Tensor values = tensor_of(*device, kCount, 9);
  on(Stream::gradients, [&](Stream s) { communicator->reduce_scatter(values, ReduceOp::sum, s); });
  EXPECT_EQ(slice_of(from_device(*device, values), own) ==
                slice_of(reduced(kCount, 9, ReduceOp::sum), own),
            true);
  on(Stream::gradients, [&](Stream s) { communicator->all_gather(values, s); });
  EXPECT_EQ(from_device(*device, values) == reduced(kCount, 9, ReduceOp::sum), true);

  const Tensor cast = tensor_of(*device, kCount, 4);
  on(Stream::gradients, [&](Stream s) { communicator->broadcast(cast, 0, s); });
  EXPECT_EQ(from_device(*device, cast) == values_of(0, kCount, 4), true);
}

// Every rank sends to the next one, those of even number first.
TEST_P(ShareCollectives, MessagesGoFromRankToRank) {
  if (world().size() == 1) return;
  const int size = world().size();
  const int next = (world().rank() + 1) % size;
  const int previous = (world().rank() + size - 1) % size;
  for (const Stream stream : kStreams) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{4'321}, std::size_t{3'000'001}}) {
      const Tensor mine = tensor_of(*device, count, 2);
      const Tensor theirs = tensor_of(*device, count, 2);
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

TEST_P(ShareCollectives, NothingIsBroughtOfAnEmptyTensor) {
  const Tensor nothing(*device, DType::f32, {0});
  communicator->all_gather(nothing, Stream::gradients);
  communicator->reduce_scatter(nothing, ReduceOp::sum, Stream::gradients);
  communicator->broadcast(nothing, 0, Stream::gradients);
  device->synchronize(Stream::gradients);
}

// Calls of every kind in turn, of few pieces and of many, and ranks that are late.
TEST_P(ShareCollectives, CallsOfAllKindsAreKeptApartWhoeverIsLate) {
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
    const Tensor& values = tensors[static_cast<std::size_t>(call)];
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

TEST_P(ShareCollectives, SharesThatAreNotAllOfATensorAreRefused) {
  const Tensor values = tensor_of(*device, 10, 0);
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

TEST_P(ShareCollectives, RanksThatAreNotOfTheGroupAreRefused) {
  const Tensor values = tensor_of(*device, 10, 0);
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
