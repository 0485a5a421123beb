// Both carriers of collectives on host memory: what MPI does between hosts is tested on one.
#include "parallel/group/host_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parallel/mpi/mpi_collectives.h"
#include "parallel/shared_memory/shared_memory_collectives.h"
#include "tensor/error.h"
#include "tensor/tensor.h"
#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Make = std::unique_ptr<HostCollectives> (*)(const ProcessGroup& group);
struct Carrier {
  const char* name;
  Make make;
};

class HostCollectivesBy : public ::testing::TestWithParam<Carrier> {
 protected:
  ProcessGroup group = world().split(0);
  std::unique_ptr<HostCollectives> collectives = GetParam().make(group);
};

std::unique_ptr<HostCollectives> make_mpi(const ProcessGroup& group) {
  return std::make_unique<MpiCollectives>(group);
}
std::unique_ptr<HostCollectives> make_shared_memory(const ProcessGroup& group) {
  return SharedMemoryCollectives::make(group);
}

INSTANTIATE_TEST_SUITE_P(Carriers, HostCollectivesBy,
                         ::testing::Values(Carrier{"Mpi", make_mpi},
                                           Carrier{"SharedMemory", make_shared_memory}),
                         [](const auto& carrier) { return carrier.param.name; });

template <class T>
TensorView view_of(std::vector<T>& values) {
  return host_view(std::span<T>(values));
}

// Whole numbers that bf16 holds, as does their sum.
template <class T>
std::vector<T> values_of_rank(int rank, std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<T>(static_cast<float>((i * 7 + std::int64_t{rank} * 5) % 16)));
  }
  return values;
}

template <class T>
void expect_all_calls(HostCollectives& collectives, std::int64_t count) {
  const int self = world().rank();
  const int size = world().size();
  // Rank 0 has nothing where there are others.
  std::vector<Range> shares = {{0, size == 1 ? count : 0}};
  if (size > 1) {
    for (const Range& part : partition(count, size - 1)) shares.push_back(part);
  }
  const Range own = shares[static_cast<std::size_t>(self)];
  std::vector<float> sums(static_cast<std::size_t>(count));
  std::vector<T> all_shares;
  for (int r = 0; r < size; ++r) {
    const std::vector<T> theirs = values_of_rank<T>(r, count);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(theirs[i]);
    const Range& share = shares[static_cast<std::size_t>(r)];
    all_shares.insert(all_shares.end(), theirs.begin() + share.begin, theirs.begin() + share.end);
  }
  const auto is_sum = [&](const std::vector<T>& values, const Range& range) {
    for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end);
         ++i) {
      if (static_cast<float>(values[i]) != sums[i]) return false;
    }
    return true;
  };
  const auto is_equal = [](const std::vector<T>& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](T x, T y) { return static_cast<float>(x) == static_cast<float>(y); });
  };

  std::vector<T> values = values_of_rank<T>(self, count);
  collectives.all_reduce(view_of(values), ReduceOp::sum);
  EXPECT_TRUE(is_sum(values, {0, count}));

  values = values_of_rank<T>(self, count);
  collectives.reduce_scatter(view_of(values), shares, ReduceOp::sum);
  EXPECT_TRUE(is_sum(values, own));

  values = values_of_rank<T>(self, count);
  collectives.all_gather(view_of(values), shares);
  EXPECT_TRUE(is_equal(values, all_shares));

  for (int root = 0; root < size; ++root) {
    values = values_of_rank<T>(self, count);
    collectives.broadcast(view_of(values), root);
    EXPECT_TRUE(is_equal(values, values_of_rank<T>(root, count)));
  }
}

TEST_P(HostCollectivesBy, ServesEveryCallInEveryDType) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{100}, std::int64_t{300'001}}) {
    expect_all_calls<float>(*collectives, count);
    expect_all_calls<double>(*collectives, count);
    expect_all_calls<std::int32_t>(*collectives, count);
    expect_all_calls<std::int64_t>(*collectives, count);
    expect_all_calls<BFloat16>(*collectives, count);
  }
}

// Values whose sum depends on the order, as floats of all sizes.
std::vector<float> uneven_values(unsigned leaf, std::int64_t count) {
  std::vector<float> values = random_values(count, 100 + leaf);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(values[i], static_cast<int>((i * 7 + std::size_t{leaf} * 13) % 24));
  }
  return values;
}

// The node [begin, end) of a tree of such values.
std::vector<float> node(std::int64_t begin, std::int64_t end, std::int64_t count) {
  if (end - begin == 1) return uneven_values(static_cast<unsigned>(begin), count);
  const std::int64_t middle = (begin + end) / 2;
  std::vector<float> sum = node(begin, middle, count);
  const std::vector<float> right = node(middle, end, count);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

TEST_P(HostCollectivesBy, AddsUpInTheOrderOfATree) {
  const int size = world().size();
  for (const int num_leaves : {size, 2 * size, 4 * size, 5 * size}) {
    const SumTree tree(num_leaves);
    const SumOrder order = tree.over_ranks(size);
    const StackSum own = tree.of_leaves(leaves_of(num_leaves, size, world().rank()));
    for (const std::int64_t count : {1, 5, 1000, 140'001}) {
      std::vector<std::vector<float>> sums;
      std::vector<ConstTensorView> summands;
      for (const Range& leaves : own.nodes) {
        sums.push_back(node(leaves.begin, leaves.end, count));
      }
      for (std::vector<float>& sum : sums) summands.emplace_back(view_of(sum));
      // The first summand's own place, and another.
      std::vector<float> elsewhere(static_cast<std::size_t>(count), -1.0F);
      collectives->all_reduce_in_order(view_of(elsewhere), summands, order);
      collectives->all_reduce_in_order(view_of(sums.front()), summands, order);
      const std::vector<float> expected = node(0, num_leaves, count);
      EXPECT_TRUE(elsewhere == expected) << num_leaves << " leaves, " << count;
      EXPECT_TRUE(sums.front() == expected) << num_leaves << " leaves, " << count;
    }
  }
}

TEST_P(HostCollectivesBy, TakesNoSummandOfARankThatHasNone) {
  const int size = world().size();
  SumOrder order{.num_summands = {}, .num_merges = {0}, .depth = 1};
  for (int r = 0; r < size; ++r) order.num_summands.push_back(r + 1 == size ? 1 : 0);
  std::vector<float> given = uneven_values(1, 1000);
  std::vector<ConstTensorView> summands;
  if (world().rank() + 1 == size) summands.emplace_back(view_of(given));
  std::vector<float> sum(1000);
  collectives->all_reduce_in_order(view_of(sum), summands, order);
  EXPECT_TRUE(sum == uneven_values(1, 1000));
}

// What rank 0 calls, and what the others do; and the words for both that the error has.
struct Mismatch {
  std::function<void(HostCollectives&)> on_rank_0;
  std::function<void(HostCollectives&)> on_others;
  std::string of_rank_0;
  std::string of_others;
};

class DifferentCalls : public ::testing::Test {
 protected:
  static void expect_error(const Mismatch& mismatch) {
    if (world().size() == 1) return;
    const bool is_0 = world().rank() == 0;
    const auto collectives = SharedMemoryCollectives::make(world());
    std::string text = "no error";
    try {
      (is_0 ? mismatch.on_rank_0 : mismatch.on_others)(*collectives);
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_THAT(text, AllOf(HasSubstr(mismatch.of_rank_0 + (is_0 ? " on rank 0 of" : " on rank 0")),
                            HasSubstr(mismatch.of_others + " on rank ")));
  }

  std::vector<float> values = std::vector<float>(100'000);
  TensorView view = view_of(values);
  std::vector<Range> even = partition(view.count(), world().size());
  // The last rank has everything.
  std::vector<Range> uneven = [this] {
    std::vector<Range> shares(static_cast<std::size_t>(world().size()), {0, 0});
    shares.back() = {0, view.count()};
    return shares;
  }();
};

TEST_F(DifferentCalls, OfAnotherKindAreNamed) {
  expect_error({.on_rank_0 = [&](HostCollectives& by) { by.all_reduce(view, ReduceOp::sum); },
                .on_others = [&](HostCollectives& by) { by.all_gather(view, even); },
                .of_rank_0 = "an all-reduce (sum) of 400000 bytes of f32",
                .of_others = "an all-gather of 400000 bytes of f32"});
  expect_error(
      {.on_rank_0 = [&](HostCollectives& by) { by.broadcast(view, 0); },
       .on_others = [&](HostCollectives& by) { by.reduce_scatter(view, even, ReduceOp::max); },
       .of_rank_0 = "a broadcast of 400000 bytes of f32 from rank 0",
       .of_others = "a reduce-scatter (max) of 400000 bytes of f32"});
}

TEST_F(DifferentCalls, OfAnotherLengthAreNamed) {
  const TensorView shorter = view.slice(0, 10);
  expect_error(
      {.on_rank_0 = [&](HostCollectives& by) { by.all_gather(view, even); },
       .on_others =
           [&](HostCollectives& by) { by.all_gather(shorter, partition(10, world().size())); },
       .of_rank_0 = "an all-gather of 400000 bytes of f32",
       .of_others = "an all-gather of 40 bytes of f32"});
  expect_error({.on_rank_0 = [&](HostCollectives& by) { by.broadcast(shorter, 0); },
                .on_others = [&](HostCollectives& by) { by.broadcast(view, 0); },
                .of_rank_0 = "a broadcast of 40 bytes of f32 from rank 0",
                .of_others = "a broadcast of 400000 bytes of f32 from rank 0"});
}

TEST_F(DifferentCalls, OfAnotherDTypeOrOperationAreNamed) {
  std::vector<std::int32_t> integers(100'000);
  expect_error(
      {.on_rank_0 = [&](HostCollectives& by) { by.all_reduce(view, ReduceOp::sum); },
       .on_others = [&](HostCollectives& by) { by.all_reduce(view_of(integers), ReduceOp::sum); },
       .of_rank_0 = "of 400000 bytes of f32",
       .of_others = "of 400000 bytes of i32"});
  expect_error({.on_rank_0 = [&](HostCollectives& by) { by.all_reduce(view, ReduceOp::sum); },
                .on_others = [&](HostCollectives& by) { by.all_reduce(view, ReduceOp::max); },
                .of_rank_0 = "an all-reduce (sum) of 400000 bytes of f32",
                .of_others = "an all-reduce (max) of 400000 bytes of f32"});
}

TEST_F(DifferentCalls, OfAnotherRootOrOtherSharesAreNamed) {
  expect_error({.on_rank_0 = [&](HostCollectives& by) { by.broadcast(view, 0); },
                .on_others = [&](HostCollectives& by) { by.broadcast(view, 1); },
                .of_rank_0 = "from rank 0",
                .of_others = "from rank 1"});
  if (world().size() == 1) return;
  for (const bool reduces : {false, true}) {
    const auto call = [&](HostCollectives& by, const std::vector<Range>& shares) {
      if (reduces) return by.reduce_scatter(view, shares, ReduceOp::sum);
      by.all_gather(view, shares);
    };
    const auto collectives = SharedMemoryCollectives::make(world());
    try {
      call(*collectives, world().rank() == 0 ? even : uneven);
      ADD_FAILURE() << "calls that differ were accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(", with other shares"));
    }
  }
}

TEST(Messages, OfAnotherLengthOrDTypeAreNamed) {
  if (world().size() == 1) return;
  std::vector<float> floats(10);
  std::vector<std::int64_t> integers(5);
  const ProcessGroup group = world().split(0);
  MpiCollectives collectives(group);
  if (world().rank() == 0) {
    collectives.send_header(view_of(floats), 1);
    collectives.send_header(view_of(floats), 1);
  } else if (world().rank() == 1) {
    for (const TensorView expected : {view_of(integers), view_of(floats).slice(0, 9)}) {
      try {
        collectives.recv_header(expected, 0);
        ADD_FAILURE() << "a message that differs was accepted";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr(" on rank 1 of the group met a send of 40 bytes "
                                                  "of f32 on rank 0")));
      }
    }
  }
  world().barrier();
}

}  // namespace
}  // namespace redspine::testing
