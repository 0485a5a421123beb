// The order in which exact mode adds up what ranks share: the summands are the leaves of a binary
// tree that depends on their number alone, so that the sum has the same bits whoever computes which
// part of it. Pure arithmetic, local.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "parallel/partition.h"

namespace redspine {

/// A program for a stack: for each item in turn, push it, and then so many times replace the two
/// topmost by their sum.
struct StackSum {
  std::vector<int> num_merges;  // [item]
  std::vector<Range> nodes;     // the leaves of what is left on the stack, bottom first
  int depth = 0;                // the most that the stack holds

  /// How many entries lie beneath each item when it is pushed.
  std::vector<int> places() const;
};

/// The order of a sum over ranks: how many summands each rank gives, and the program for all of
/// them in the order of the ranks.
struct SumOrder {
  std::vector<int> num_summands;  // [rank]
  std::vector<int> num_merges;    // [summand]
  int depth = 0;

  int most_summands() const;
};

/// Node [b, e) of the tree is the sum of its halves, which meet at (b + e) / 2. A leaf may be
/// empty: it is no summand then (`is_empty` by number; nothing: none is).
class SumTree {
 public:
  explicit SumTree(int num_leaves, std::vector<bool> is_empty = {});

  int num_leaves() const { return num_leaves_; }

  /// The sum of neighbouring leaves, each an item unless it is empty: as far as they make whole
  /// nodes of the tree.
  StackSum of_leaves(const Range& leaves) const;
  /// The sum of all leaves, where the items are the nodes that `of_leaves` has left of the parts of
  /// all leaves. One node is left, or none where every leaf is empty.
  StackSum of_nodes(std::span<const Range> nodes) const;
  /// The order of the sum over ranks, each of which owns its part of the leaves: `leaves_of`.
  SumOrder over_ranks(int num_ranks) const;

 private:
  class Visitor;

  int num_leaves_;
  std::vector<bool> is_empty_;
};

/// Part `index` of `parts` of the leaves: what a rank owns. `parts` divides their number.
Range leaves_of(int num_leaves, int parts, int index);
/// Leaf `leaf` of a dim of `count` items.
Range leaf_range(std::int64_t count, int num_leaves, int leaf);

}  // namespace redspine
