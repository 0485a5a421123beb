#include "parallel/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace redspine {
namespace {

TEST(Partition, CoversEveryItemOnceInOrder) {
  for (std::int64_t count = 0; count <= 40; ++count) {
    for (int parts = 1; parts <= 9; ++parts) {
      std::int64_t next = 0;
      for (int index = 0; index < parts; ++index) {
        const Range part = partition(count, parts, index);
        ASSERT_EQ(part.begin, next) << count << " over " << parts << ", part " << index;
        ASSERT_GE(part.end, part.begin);
        next = part.end;
      }
      ASSERT_EQ(next, count) << "over " << parts;
    }
  }
}

TEST(Partition, SizesDifferByAtMostOneAndTheLargerComeFirst) {
  for (std::int64_t count = 0; count <= 40; ++count) {
    for (int parts = 1; parts <= 9; ++parts) {
      for (int index = 1; index < parts; ++index) {
        const std::int64_t before = partition(count, parts, index - 1).size();
        const std::int64_t size = partition(count, parts, index).size();
        ASSERT_TRUE(before == size || before == size + 1) << count << " over " << parts;
        ASSERT_LE(partition(count, parts, 0).size() - size, 1) << count << " over " << parts;
      }
    }
  }
}

TEST(Partition, TakesVocabulariesThatNoDegreeDivides) {
  EXPECT_EQ(partition(257, 4, 0), (Range{0, 65}));
  EXPECT_EQ(partition(257, 4, 1), (Range{65, 129}));
  EXPECT_EQ(partition(257, 4, 3), (Range{193, 257}));
  EXPECT_EQ(partition(50257, 8, 0).size(), 6283);
  EXPECT_EQ(partition(50257, 8, 7), (Range{43975, 50257}));
}

TEST(Partition, TakesCountsBeyond32Bits) {
  constexpr std::int64_t kCount = std::int64_t{1} << 40;
  EXPECT_EQ(partition(kCount + 1, 3, 2).end, kCount + 1);
  EXPECT_EQ(partition(kCount, 4, 3), (Range{3 * (kCount / 4), kCount}));
}

TEST(Pieces, CoverTheCountWithoutGoingBeyondTheirSize) {
  for (std::int64_t count = 0; count <= 20; ++count) {
    for (std::int64_t size = 1; size <= 7; ++size) {
      std::int64_t next = 0;
      for (const Range& piece : pieces(count, size)) {
        ASSERT_EQ(piece.begin, next);
        ASSERT_GE(piece.size(), 1);
        ASSERT_LE(piece.size(), size);
        next = piece.end;
      }
      ASSERT_EQ(next, count);
    }
  }
}

TEST(Pieces, OfACountBeyond32BitsHaveOffsetsBeyond32Bits) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const auto all = pieces(3 * kMax + 5, kMax);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[2], (Range{2 * kMax, 3 * kMax}));
  EXPECT_EQ(all[3], (Range{3 * kMax, 3 * kMax + 5}));
}

struct Heads {
  std::int64_t num_query;
  std::int64_t num_kv;
  int parts;
};

std::vector<Heads> all_heads() {
  std::vector<Heads> all;
  for (std::int64_t query : {1, 2, 3, 4, 6, 8, 12, 30}) {
    for (std::int64_t kv = 1; kv <= query; ++kv) {
      for (int parts = 1; parts <= query; ++parts) {
        if (query % kv == 0 && query % parts == 0) all.push_back({query, kv, parts});
      }
    }
  }
  return all;
}

TEST(HeadPartition, GivesEveryRankTheHeadsThatItsQueriesRead) {
  for (const auto& [num_query, num_kv, parts] : all_heads()) {
    for (int index = 0; index < parts; ++index) {
      const HeadPartition heads = partition_heads(num_query, num_kv, parts, index);
      ASSERT_EQ(heads.query_heads.size(), num_query / parts);
      std::int64_t first = num_kv;
      std::int64_t last = -1;
      for (std::int64_t q = heads.query_heads.begin; q < heads.query_heads.end; ++q) {
        first = std::min(first, q * num_kv / num_query);
        last = std::max(last, q * num_kv / num_query);
      }
      ASSERT_EQ(heads.kv_heads, (Range{first, last + 1}))
          << num_query << " on " << num_kv << " over " << parts << ", rank " << index;
    }
  }
}

TEST(HeadPartition, GivesEveryKeyValueHeadOneOwnerThatHoldsIt) {
  for (const auto& [num_query, num_kv, parts] : all_heads()) {
    std::vector<int> num_owners(static_cast<std::size_t>(num_kv), 0);
    for (int index = 0; index < parts; ++index) {
      const HeadPartition heads = partition_heads(num_query, num_kv, parts, index);
      ASSERT_GE(heads.owned_kv_heads.begin, heads.kv_heads.begin);
      ASSERT_LE(heads.owned_kv_heads.end, heads.kv_heads.end);
      ASSERT_GE(heads.owned_kv_heads.size(), 0);
      for (std::int64_t head = heads.owned_kv_heads.begin; head < heads.owned_kv_heads.end;
           ++head) {
        ++num_owners[static_cast<std::size_t>(head)];
      }
    }
    for (const int owners : num_owners) {
      ASSERT_EQ(owners, 1) << num_query << " on " << num_kv << " over " << parts;
    }
  }
}

// Six queries on two key/value heads over three ranks: the middle rank reads both.
TEST(HeadPartition, LetsARankReadTwoHeadsThatItsNeighboursOwn) {
  const HeadPartition first = partition_heads(6, 2, 3, 0);
  const HeadPartition middle = partition_heads(6, 2, 3, 1);
  const HeadPartition last = partition_heads(6, 2, 3, 2);
  EXPECT_EQ(first.kv_heads, (Range{0, 1}));
  EXPECT_EQ(first.owned_kv_heads, (Range{0, 1}));
  EXPECT_EQ(middle.query_heads, (Range{2, 4}));
  EXPECT_EQ(middle.kv_heads, (Range{0, 2}));
  EXPECT_EQ(middle.owned_kv_heads, (Range{1, 2}));
  EXPECT_EQ(last.kv_heads, (Range{1, 2}));
  EXPECT_EQ(last.owned_kv_heads.size(), 0);
}

TEST(Partition, OfAllPartsIsEachOfThem) {
  const std::vector<Range> all = partition(257, 4);
  ASSERT_EQ(all.size(), 4U);
  for (int index = 0; index < 4; ++index) {
    EXPECT_EQ(all[static_cast<std::size_t>(index)], partition(257, 4, index));
  }
}

TEST(Partition, OfARangeLiesInIt) {
  EXPECT_EQ(part_of({10, 17}, 2, 0), (Range{10, 14}));
  EXPECT_EQ(part_of({10, 17}, 2, 1), (Range{14, 17}));
  EXPECT_EQ(part_of({10, 10}, 3, 1), (Range{10, 10}));
}

TEST(Partition, PartsOfSharesTogetherHaveNoMoreThanWasAskedFor) {
  constexpr std::int64_t kMost = 20;
  for (const std::vector<Range>& shares : std::vector<std::vector<Range>>{
           {{0, 1}}, {{0, 100}, {100, 100}, {100, 101}}, {{0, 33}, {33, 66}, {66, 99}}}) {
    const std::int64_t count = shares.back().end;
    const int num_parts = num_parts_of_shares(count, shares.size(), kMost);
    EXPECT_GE(num_parts, 1);
    for (int p = 0; p < num_parts; ++p) {
      std::int64_t together = 0;
      for (const Range& share : shares) together += part_of(share, num_parts, p).size();
      EXPECT_LE(together, kMost);
    }
  }
  EXPECT_EQ(num_parts_of_shares(0, 3, kMost), 0);
}

}  // namespace
}  // namespace redspine
