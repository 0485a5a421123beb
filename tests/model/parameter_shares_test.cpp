#include "model/parameter_shares.h"

#include <gtest/gtest.h>

#include "model/parameters.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

void expect_cover(const std::vector<Range>& shares, const Range& bucket) {
  std::int64_t begin = bucket.begin;
  for (const Range& share : shares) {
    EXPECT_EQ(share.begin, begin);
    EXPECT_GE(share.end, share.begin);
    begin = share.end;
  }
  EXPECT_EQ(begin, bucket.end);
}

TEST(ShareOut, CutsBetweenTheRowsThatAreNearestToEvenShares) {
  // Ten rows of seven, a gap of two, and a vector of eight.
  const std::vector<RowsInBuffer> rows = {{100, 10, 7}, {172, 1, 8}};
  const Range bucket{100, 180};
  EXPECT_EQ(share_out(bucket, rows, 1), (std::vector<Range>{bucket}));
  EXPECT_EQ(share_out(bucket, rows, 2), (std::vector<Range>{{100, 142}, {142, 180}}));
  EXPECT_EQ(share_out(bucket, rows, 4),
            (std::vector<Range>{{100, 121}, {121, 142}, {142, 163}, {163, 180}}));
}

TEST(ShareOut, LeavesVectorsWholeAndGapsWithWhatIsBeforeThem) {
  const std::vector<RowsInBuffer> rows = {{0, 1, 30}, {32, 1, 30}, {64, 0, 0}};
  expect_cover(share_out({0, 64}, rows, 2), {0, 64});
  EXPECT_EQ(share_out({0, 64}, rows, 2)[0], (Range{0, 32}));
  // The end of the first third lies in the first vector, that of the second in the other.
  EXPECT_EQ(share_out({0, 64}, rows, 3), (std::vector<Range>{{0, 32}, {32, 32}, {32, 64}}));
}

TEST(ShareOut, GivesNothingToRanksForWhichThereAreNoRows) {
  const std::vector<RowsInBuffer> rows = {{0, 3, 5}};
  for (int num_ranks = 1; num_ranks <= 9; ++num_ranks) {
    const std::vector<Range> shares = share_out({0, 16}, rows, num_ranks);
    EXPECT_EQ(shares.size(), static_cast<std::size_t>(num_ranks));
    expect_cover(shares, {0, 16});
  }
  expect_cover(share_out({7, 7}, {}, 3), {7, 7});
}

// A stack of two matrices and a vector, then a matrix with a second gradient.
class SharedStore : public ::testing::Test {
 protected:
  void declare(ParameterStore& store) const {
    const auto matrix = [](std::string name, std::int64_t rows, std::int64_t cols) {
      return sharded_parameter(std::move(name), {rows, cols}, 0, {0, rows});
    };
    store.begin_bucket();
    store.declare({matrix("a", 2, 3), matrix("b", 5, 3)});
    store.declare({replicated_parameter("c", {7}, 0)});
    store.begin_bucket();
    ParameterStack& last = store.declare({matrix("d", 6, 4)});
    store.declare_second_gradient(last);
    store.allocate(*device_);
  }

  std::unique_ptr<Device> device_ = make_cpu_device(1);
};

TEST_F(SharedStore, RanksUpdateEachRowOnce) {
  for (const int num_ranks : {1, 2, 3, 5}) {
    std::vector<std::int64_t> num_updated(4);
    std::int64_t num_moments = 0;
    for (int rank = 0; rank < num_ranks; ++rank) {
      ParameterStore store;
      declare(store);
      store.share_updates(num_ranks, rank);
      EXPECT_EQ(store.shares().are_apart(), num_ranks > 1);
      num_moments += store.shares().num_moments();
      for (std::size_t p = 0; p < store.parameters().size(); ++p) {
        const Parameter& parameter = store.parameters()[p];
        if (parameter.updated.size() == 0) continue;
        EXPECT_EQ(parameter.updated.begin, num_updated[p]) << parameter.spec.name;
        num_updated[p] = parameter.updated.end;
        EXPECT_EQ(parameter.owned_gradient().count(),
                  parameter.updated.size() * parameter.row_size());
        EXPECT_LE(parameter.moments_offset + parameter.updated.size() * parameter.row_size(),
                  store.shares().num_moments());
      }
    }
    EXPECT_EQ(num_updated, (std::vector<std::int64_t>{2, 5, 7, 6})) << num_ranks;
    ParameterStore store;
    declare(store);
    EXPECT_EQ(num_moments, store.values().count());
  }
}

TEST_F(SharedStore, WithoutSharesMomentsLieAsValuesDo) {
  ParameterStore store;
  declare(store);
  for (const Parameter& parameter : store.parameters()) {
    EXPECT_EQ(parameter.moments_offset, parameter.offset);
    EXPECT_EQ(parameter.updated, (Range{0, parameter.value.dim(0)}));
  }
  EXPECT_EQ(store.shares().runs().size(), 1U);
  for (const GradientBucket& bucket : store.buckets()) EXPECT_TRUE(bucket.shares.empty());
}

TEST_F(SharedStore, ASecondGradientIsSharedAsTheFirstIs) {
  for (int rank = 0; rank < 3; ++rank) {
    ParameterStore store;
    declare(store);
    store.share_updates(3, rank);
    const std::vector<GradientBucket> buckets = store.buckets();
    ASSERT_EQ(buckets.size(), 3U);
    EXPECT_EQ(buckets[1].shares, (std::vector<Range>{{0, 12}, {12, 32}, {32, 32}}));
    EXPECT_EQ(buckets[2].shares, (std::vector<Range>{{0, 12}, {12, 24}, {24, 24}}));
    expect_cover(buckets[0].shares, {0, buckets[0].gradients.front().count()});

    // Only what this rank updates has to be there, and is added up.
    const Parameter& d = store.parameters().back();
    const TensorView first = d.gradient.reshape({24});
    const TensorView second = buckets[2].gradients.front();
    std::fill_n(first.data<float>(), 24, 1.0F);
    std::fill_n(second.data<float>(), 24, 2.0F);
    store.add_second_gradients(*device_);
    const Range own = buckets[2].shares[static_cast<std::size_t>(rank)];
    for (std::int64_t i = 0; i < 24; ++i) {
      const bool is_own = i >= own.begin && i < own.end;
      EXPECT_EQ(first.data<float>()[i], is_own ? 3.0F : 1.0F) << i;
    }
  }
}

TEST_F(SharedStore, GatheredBucketsAreThoseOfGradients) {
  ParameterStore store;
  declare(store);
  store.share_updates(2, 1);
  const std::vector<GradientBucket> reduced = store.buckets();
  const std::vector<GatheredBucket> gathered = store.gathered_buckets();
  ASSERT_EQ(gathered.size(), 2U);
  for (std::size_t b = 0; b < gathered.size(); ++b) {
    EXPECT_EQ(gathered[b].shares, reduced[b].shares);
    ASSERT_EQ(gathered[b].values.size(), 1U);
    EXPECT_EQ(gathered[b].values[0].count(), reduced[b].gradients[0].count());
  }
  EXPECT_EQ(gathered[0].values[0].raw(), store.values().raw());
}

}  // namespace
}  // namespace redspine::testing
