#include "parallel/sum_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace redspine {
namespace {

std::string plus(const std::string& left, const std::string& right) {
  return "(" + left + "+" + right + ")";
}

// What a stack holds after the program, in words.
std::vector<std::string> run(const std::vector<int>& num_merges,
                             const std::vector<std::string>& items) {
  std::vector<std::string> stack;
  for (std::size_t i = 0; i < items.size(); ++i) {
    stack.push_back(items[i]);
    for (int merge = 0; merge < num_merges[i]; ++merge) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = plus(stack.back(), right);
    }
  }
  return stack;
}

// The tree by its definition.
std::string tree_of(std::int64_t begin, std::int64_t end, const std::vector<bool>& is_empty) {
  if (end - begin == 1) {
    return is_empty[static_cast<std::size_t>(begin)] ? "" : std::to_string(begin);
  }
  const std::int64_t middle = (begin + end) / 2;
  std::string left = tree_of(begin, middle, is_empty);
  std::string right = tree_of(middle, end, is_empty);
  if (left.empty()) return right;
  return right.empty() ? left : plus(left, right);
}

// The sum over ranks as they put it together.
std::string sum_over_ranks(const SumTree& tree, int num_ranks, const std::vector<bool>& is_empty) {
  std::vector<std::string> summands;
  const SumOrder order = tree.over_ranks(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    const Range leaves = leaves_of(tree.num_leaves(), num_ranks, rank);
    std::vector<std::string> items;
    for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
      if (!is_empty[static_cast<std::size_t>(leaf)]) items.push_back(std::to_string(leaf));
    }
    const StackSum own = tree.of_leaves(leaves);
    const std::vector<std::string> sums = run(own.num_merges, items);
    EXPECT_EQ(sums.size(), own.nodes.size());
    EXPECT_EQ(std::ssize(sums), order.num_summands[static_cast<std::size_t>(rank)]);
    EXPECT_LE(std::ssize(sums), own.depth);
    summands.insert(summands.end(), sums.begin(), sums.end());
  }
  const std::vector<std::string> all = run(order.num_merges, summands);
  EXPECT_LE(all.size(), 1U);
  return all.empty() ? "" : all.front();
}

TEST(SumTree, HasOneOrderForAnyNumberOfRanks) {
  for (const int num_leaves : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    const std::vector<bool> is_empty(static_cast<std::size_t>(num_leaves));
    const std::string expected = tree_of(0, num_leaves, is_empty);
    for (int num_ranks = 1; num_ranks <= num_leaves; ++num_ranks) {
      if (num_leaves % num_ranks != 0) continue;
      EXPECT_EQ(sum_over_ranks(SumTree(num_leaves), num_ranks, is_empty), expected)
          << num_leaves << " over " << num_ranks;
    }
  }
}

TEST(SumTree, LeavesOutWhatIsEmpty) {
  constexpr int kNumLeaves = 12;
  for (unsigned bits = 0; bits < 1U << kNumLeaves; bits += 5) {
    std::vector<bool> is_empty;
    for (int leaf = 0; leaf < kNumLeaves; ++leaf) is_empty.push_back((bits >> leaf & 1U) != 0);
    const std::string expected = tree_of(0, kNumLeaves, is_empty);
    for (const int num_ranks : {1, 2, 3, 4, 6, 12}) {
      ASSERT_EQ(sum_over_ranks(SumTree(kNumLeaves, is_empty), num_ranks, is_empty), expected)
          << bits << " over " << num_ranks;
    }
  }
}

TEST(SumTree, SplitsAtTheMiddle) {
  EXPECT_EQ(tree_of(0, 8, std::vector<bool>(8)), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(tree_of(0, 3, std::vector<bool>(3)), "(0+(1+2))");
}

TEST(SumTree, APowerOfTwoLeavesEachRankOneNode) {
  for (const int num_ranks : {1, 2, 4, 8}) {
    EXPECT_EQ(SumTree(8).over_ranks(num_ranks).num_summands,
              std::vector<int>(static_cast<std::size_t>(num_ranks), 1));
  }
}

TEST(StackSum, PlacesAreWhatLiesBeneath) {
  const StackSum sum = SumTree(4).of_leaves({0, 4});
  EXPECT_EQ(sum.num_merges, (std::vector<int>{0, 1, 0, 2}));
  EXPECT_EQ(sum.places(), (std::vector<int>{0, 1, 1, 2}));
  EXPECT_EQ(sum.depth, 3);
}

TEST(LeafRange, CutsAnyCountWithoutGaps) {
  for (const std::int64_t count : {0, 1, 5, 8, 257, 50257}) {
    std::int64_t next = 0;
    for (int leaf = 0; leaf < 8; ++leaf) {
      const Range range = leaf_range(count, 8, leaf);
      EXPECT_EQ(range.begin, next);
      next = range.end;
    }
    EXPECT_EQ(next, count);
  }
  EXPECT_EQ(leaf_range(257, 4, 3), (Range{192, 257}));
}

}  // namespace
}  // namespace redspine
