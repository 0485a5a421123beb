// Sums in the order of a tree, each rank's share of them alone: the bits of the tree's own
// recursion over all leaves, by both carriers of collectives on host memory.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "parallel/mpi/mpi_collectives.h"
#include "parallel/shared_memory/shared_memory_collectives.h"
#include "tensor/error.h"
#include "tensor/tensor.h"
#include "tests/parallel/group/communicator_ways.h"

namespace redspine::testing {
namespace {

using Floats = std::vector<float>;

// Three leaves a rank: some ranks have one whole node of the tree, others several.
int num_leaves() { return 3 * world().size(); }

Floats leaf(std::int64_t index, std::int64_t count) {
  return random_values(count, static_cast<unsigned>(index) + 1);
}

Floats node(const Range& leaves, std::int64_t count) {
  if (leaves.size() == 1) return leaf(leaves.begin, count);
  const std::int64_t middle = (leaves.begin + leaves.end) / 2;
  Floats sum = node({leaves.begin, middle}, count);
  const Floats right = node({middle, leaves.end}, count);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

// This rank's: what is left of its leaves.
std::vector<Floats> own_summands(const SumTree& tree, std::int64_t count) {
  std::vector<Floats> summands;
  const Range own = leaves_of(num_leaves(), world().size(), world().rank());
  for (const Range& range : tree.of_leaves(own).nodes) summands.push_back(node(range, count));
  return summands;
}

// Even shares, and one in which the last rank but one has most and the first nothing.
std::vector<Shares> shares_of(std::int64_t count) {
  const int size = world().size();
  std::vector<Shares> all = {partition(count, size)};
  Shares uneven;
  for (int r = 0; r < size; ++r) {
    const std::int64_t begin = uneven.empty() ? 0 : uneven.back().end;
    uneven.push_back({begin, r + 1 == size ? count : begin + (r == size - 2 ? count * 3 / 4 : 0)});
  }
  all.push_back(uneven);
  return all;
}

using Make = std::unique_ptr<HostCollectives> (*)(const ProcessGroup& group);
struct Carrier {
  const char* name;
  Make make;
};
std::unique_ptr<HostCollectives> make_mpi(const ProcessGroup& group) {
  return std::make_unique<MpiCollectives>(group);
}
std::unique_ptr<HostCollectives> make_shared_memory(const ProcessGroup& group) {
  return SharedMemoryCollectives::make(group);
}

class ReduceScatterInOrder : public ::testing::TestWithParam<Carrier> {
 protected:
  ProcessGroup group = world().split(0);
  std::unique_ptr<HostCollectives> collectives = GetParam().make(group);
  SumTree tree{num_leaves()};
  SumOrder order = tree.over_ranks(world().size());
};
INSTANTIATE_TEST_SUITE_P(Carriers, ReduceScatterInOrder,
                         ::testing::Values(Carrier{"Mpi", make_mpi},
                                           Carrier{"SharedMemory", make_shared_memory}),
                         [](const auto& carrier) { return carrier.param.name; });

bool has_same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TEST_P(ReduceScatterInOrder, GivesEachRankItsShareOfTheTreesSum) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{1'003}, std::int64_t{1'300'007}}) {
    const Floats expected = node({0, num_leaves()}, count);
    for (const Shares& shares : shares_of(count)) {
      std::vector<Floats> own = own_summands(tree, count);
      std::vector<ConstTensorView> summands;
      for (Floats& values : own) summands.emplace_back(host_view(std::span<const float>(values)));
      // In place, as a gradient buffer is its first summand.
      const TensorView out = host_view(std::span(own.front()));
      collectives->reduce_scatter_in_order(out, summands, shares, order);
      const Range& mine = shares[static_cast<std::size_t>(world().rank())];
      EXPECT_TRUE(has_same_bits(slice_of(own.front(), mine), slice_of(expected, mine)))
          << count << " values";
    }
  }
}

TEST_P(ReduceScatterInOrder, HasTheBitsOfTheWholeSum) {
  constexpr std::int64_t kCount = 40'007;
  std::vector<Floats> own = own_summands(tree, kCount);
  std::vector<ConstTensorView> summands;
  for (Floats& values : own) summands.emplace_back(host_view(std::span<const float>(values)));
  Floats whole(kCount);
  collectives->all_reduce_in_order(host_view(std::span(whole)), summands, order);
  EXPECT_TRUE(has_same_bits(whole, node({0, num_leaves()}, kCount)));
}

TEST(Communicators, ScatterTheSumInOrderOnAnyStream) {
  const auto device = make_cpu_device(1);
  const auto communicator = make_communicator(world(), *device, CollectiveBackend::mpi);
  const SumTree tree(num_leaves());
  constexpr std::int64_t kCount = 5'001;
  const std::vector<Floats> own = own_summands(tree, kCount);
  std::vector<Tensor> tensors;
  std::vector<ConstTensorView> summands;
  for (const Floats& values : own) {
    tensors.push_back(to_device(*device, values, {kCount}));
    summands.emplace_back(tensors.back().view());
  }
  Tensor apart(*device, DType::f32, {kCount});
  const Shares shares = partition(kCount, world().size());
  for (const Stream stream : kStreams) {
    device->order(Stream::compute, stream);
    communicator->reduce_scatter_in_order(apart, summands, shares, tree.over_ranks(world().size()),
                                          stream);
    device->order(stream, Stream::compute);
    const Range& mine = shares[static_cast<std::size_t>(world().rank())];
    EXPECT_TRUE(has_same_bits(slice_of(from_device(*device, apart), mine),
                              slice_of(node({0, num_leaves()}, kCount), mine)));
  }
  EXPECT_THROW(communicator->reduce_scatter_in_order(
                   apart, {}, shares, tree.over_ranks(world().size()), Stream::gradients),
               Error);
}

}  // namespace
}  // namespace redspine::testing
