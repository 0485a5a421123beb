#include "model/leaf_sums.h"

#include <algorithm>
#include <cassert>

namespace redspine {
namespace {

// What a rank has of a leaf of a part, as a range of the dim that its parts make side by side.
Range local_range(const LeafPart& part, std::int64_t offset, std::size_t leaf) {
  const Range& range = part.leaves[leaf];
  const std::int64_t shift = offset - part.local.begin;
  return {range.begin + shift, range.end + shift};
}

}  // namespace

LeafSums leaf_sums(TensorRank rank, const std::vector<LeafPart>& parts) {
  std::vector<bool> is_empty(static_cast<std::size_t>(rank.num_leaves), true);
  for (const LeafPart& part : parts) {
    for (std::size_t l = 0; l < is_empty.size(); ++l) {
      if (part.leaves[l].size() > 0) is_empty[l] = false;
    }
  }
  const SumTree tree(rank.num_leaves, is_empty);
  const Range own = leaves_of(rank.num_leaves, rank.num_ranks, rank.rank);
  const StackSum stack = tree.of_leaves(own);
  LeafSums sums{
      .own = {.parts = {}, .num_sums = static_cast<int>(stack.nodes.size()), .depth = stack.depth},
      .over_ranks = tree.over_ranks(rank.num_ranks)};
  std::size_t item = 0;
  for (auto leaf = static_cast<std::size_t>(own.begin); leaf < static_cast<std::size_t>(own.end);
       ++leaf) {
    if (is_empty[leaf]) continue;
    std::int64_t offset = 0;
    for (const LeafPart& part : parts) {
      const Range range = local_range(part, offset, leaf);
      offset += part.local.size();
      if (range.size() == 0) continue;
      assert(range.begin >= offset - part.local.size() && range.end <= offset);
      sums.own.parts.push_back({range.begin, range.end, false, 0});
    }
    sums.own.parts.back().ends_leaf = true;
    sums.own.parts.back().num_merges = stack.num_merges[item++];
  }
  return sums;
}

std::vector<std::int64_t> leaf_ends(const LeafPart& part) {
  std::vector<std::int64_t> ends;
  for (const Range& leaf : part.leaves) {
    const std::int64_t end = std::clamp(leaf.end, part.local.begin, part.local.end);
    const std::int64_t col = end - part.local.begin;
    if (col > (ends.empty() ? 0 : ends.back())) ends.push_back(col);
  }
  return ends;
}

void LeafScratch::allocate(Device& device, TensorRank rank, std::int64_t count) {
  const auto num_sums = static_cast<std::int64_t>(
      SumTree(rank.num_leaves)
          .of_leaves(leaves_of(rank.num_leaves, rank.num_ranks, rank.rank))
          .nodes.size());
  if (num_sums > 1) sums_ = Tensor(device, DType::f32, {num_sums * count});
}

TensorView LeafScratch::place_of(const InnerOrder& order, TensorView out) {
  if (order.num_sums == 1) return out.reshape({out.rows(), out.cols()});
  return sums_.view()
      .slice(0, order.num_sums * out.count())
      .reshape({order.num_sums * out.rows(), out.cols()});
}

std::vector<ConstTensorView> summands_in(const InnerOrder& order, ConstTensorView place,
                                         ConstTensorView out) {
  std::vector<ConstTensorView> summands;
  const ConstTensorView flat = place.reshape({place.count()});
  summands.reserve(static_cast<std::size_t>(order.num_sums));
  for (int s = 0; s < order.num_sums; ++s) {
    summands.push_back(flat.slice(s * out.count(), out.count()));
  }
  return summands;
}

}  // namespace redspine
