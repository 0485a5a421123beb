// Collectives of shares, each way and on any number of ranks.
#include <gtest/gtest.h>

#include <cstring>

#include "parallel/group/communicator.h"
#include "tests/parallel/group/communicator_ways.h"

namespace redspine::testing {
namespace {

class ShareCollectives : public CommunicatorOn {};
INSTANTIATE_TEST_SUITE_P(Ways, ShareCollectives, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return way.param.name; });

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

TEST_P(ShareCollectives, AnAllGatherBringsTheShareOfEveryRank) {
  for (const std::int64_t count : kCounts) {
    for (const Shares& shares : shares_of(count)) {
      for (const Stream stream : kStreams) {
        Tensor values = tensor_of(*device, static_cast<std::size_t>(count), 3);
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
        Tensor values = tensor_of(*device, static_cast<std::size_t>(count), 3);
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
    Tensor gathered = fresh();
    on(Stream::activations, [&](Stream s) { communicator->all_gather(gathered, s); });
    EXPECT_TRUE(has_same_bits(from_device<T>(*device, gathered), all_gathered));

    Tensor scattered = fresh();
    on(Stream::activations,
       [&](Stream s) { communicator->reduce_scatter(scattered, ReduceOp::sum, s); });
    EXPECT_TRUE(has_same_bits(slice_of(from_device<T>(*device, scattered), own),
                              slice_of(as<T>(sums), own)));

    Tensor cast = fresh();
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
      Tensor whole = to_device(*device, as<T>(random), {count});
      Tensor share = to_device(*device, as<T>(random), {count});
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
  Tensor tensor = to_device(*device, values, {count});
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
  Tensor values = to_device(*device, values_of(world().rank(), count, 1), {rows, kCols});
  on(Stream::activations, [&](Stream s) { communicator->all_gather(values, s); });
  const std::vector<float> gathered = from_device(*device, values);
  for (int r = 0; r < world().size(); ++r) {
    const Range part = partition(rows, world().size(), r);
    const Range elements{part.begin * kCols, part.end * kCols};
    EXPECT_EQ(slice_of(gathered, elements), slice_of(values_of(r, count, 1), elements));
  }
}

TEST_P(ShareCollectives, TakeLongBuffersInPieces) {
  constexpr std::size_t kCount = 5'000'001;
  const Range own = partition(kCount, world().size(), world().rank());
  Tensor values = tensor_of(*device, kCount, 9);
  on(Stream::gradients, [&](Stream s) { communicator->reduce_scatter(values, ReduceOp::sum, s); });
  EXPECT_EQ(slice_of(from_device(*device, values), own) ==
                slice_of(reduced(kCount, 9, ReduceOp::sum), own),
            true);
  on(Stream::gradients, [&](Stream s) { communicator->all_gather(values, s); });
  EXPECT_EQ(from_device(*device, values) == reduced(kCount, 9, ReduceOp::sum), true);

  Tensor cast = tensor_of(*device, kCount, 4);
  on(Stream::gradients, [&](Stream s) { communicator->broadcast(cast, 0, s); });
  EXPECT_EQ(from_device(*device, cast) == values_of(0, kCount, 4), true);
}

TEST_P(ShareCollectives, NothingIsBroughtOfAnEmptyTensor) {
  Tensor nothing(*device, DType::f32, {0});
  communicator->all_gather(nothing, Stream::gradients);
  communicator->reduce_scatter(nothing, ReduceOp::sum, Stream::gradients);
  communicator->broadcast(nothing, 0, Stream::gradients);
  device->synchronize(Stream::gradients);
}

}  // namespace
}  // namespace redspine::testing
