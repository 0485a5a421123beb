// The order of a sum over a dim, where exact mode asks for one. Plain values; local.
#pragma once

#include <cstdint>
#include <vector>

namespace redspine {

/// A piece of a product's inner dim, which is added up by itself in ascending order.
struct InnerPart {
  std::int64_t begin;
  std::int64_t end;
  /// What this piece and those before it, back to the last that ends one, are a leaf of: the leaf
  /// is pushed on a stack, and the two topmost sums of that are replaced by their sum so many
  /// times.
  bool ends_leaf;
  int num_merges;
};

/// An order of the sums of a product, where exact mode asks for one (parallel/sum_tree.h): leaves,
/// each from zero, and a tree over them. The product is then `num_sums` matrices, those that are
/// left on the stack, one after another.
struct InnerOrder {
  std::vector<InnerPart> parts;
  int num_sums;  // >= 1
  int depth;     // the most sums that are there at once
};

}  // namespace redspine
