#include "parallel/sum_tree.h"

#include <algorithm>
#include <cassert>

namespace redspine {

std::vector<int> StackSum::places() const {
  std::vector<int> places;
  int height = 0;
  for (const int merges : num_merges) {
    places.push_back(height);
    height += 1 - merges;
  }
  return places;
}

SumTree::SumTree(int num_leaves, std::vector<bool> is_empty)
    : num_leaves_(num_leaves), is_empty_(std::move(is_empty)) {
  assert(num_leaves > 0);
  is_empty_.resize(static_cast<std::size_t>(num_leaves));
}

// Walks the tree once, and writes the program that the given items allow.
class SumTree::Visitor {
 public:
  // Items are single leaves of `leaves`, or, where there are `nodes`, these.
  Visitor(const SumTree& tree, const Range& leaves, std::span<const Range> nodes)
      : tree_(tree), leaves_(leaves), nodes_(nodes) {
    visit({0, tree.num_leaves_});
    assert(nodes_.empty());
  }

  StackSum take() { return std::move(sum_); }

 private:
  struct Visited {
    bool is_whole;  // every summand of the node is in what lies on the stack
    int height;     // of what the node has left there
  };

  Visited visit(const Range& node) {
    if (!nodes_.empty() && nodes_.front() == node) {
      nodes_ = nodes_.subspan(1);
      return push(node);
    }
    if (node.size() == 1) {
      if (tree_.is_empty_[static_cast<std::size_t>(node.begin)]) return {true, 0};
      const bool is_item = node.begin >= leaves_.begin && node.begin < leaves_.end;
      return is_item ? push(node) : Visited{false, 0};
    }
    const std::int64_t middle = (node.begin + node.end) / 2;
    const Visited left = visit({node.begin, middle});
    const Visited right = visit({middle, node.end});
    const bool is_whole = left.is_whole && right.is_whole;
    if (!is_whole || left.height == 0 || right.height == 0) {
      return {is_whole, left.height + right.height};
    }
    ++sum_.num_merges.back();
    sum_.nodes.pop_back();
    sum_.nodes.back() = node;
    return {true, 1};
  }

  Visited push(const Range& node) {
    sum_.num_merges.push_back(0);
    sum_.nodes.push_back(node);
    sum_.depth = std::max(sum_.depth, static_cast<int>(sum_.nodes.size()));
    return {true, 1};
  }

  const SumTree& tree_;
  Range leaves_;
  std::span<const Range> nodes_;
  StackSum sum_;
};

StackSum SumTree::of_leaves(const Range& leaves) const { return Visitor(*this, leaves, {}).take(); }

StackSum SumTree::of_nodes(std::span<const Range> nodes) const {
  return Visitor(*this, {}, nodes).take();
}

SumOrder SumTree::over_ranks(int num_ranks) const {
  SumOrder order;
  std::vector<Range> nodes;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const StackSum own = of_leaves(leaves_of(num_leaves_, num_ranks, rank));
    order.num_summands.push_back(static_cast<int>(own.nodes.size()));
    nodes.insert(nodes.end(), own.nodes.begin(), own.nodes.end());
  }
  StackSum all = of_nodes(nodes);
  order.num_merges = std::move(all.num_merges);
  order.depth = all.depth;
  return order;
}

int SumOrder::most_summands() const { return *std::ranges::max_element(num_summands); }

Range leaves_of(int num_leaves, int parts, int index) {
  assert(num_leaves % parts == 0);
  return partition(num_leaves, parts, index);
}

Range leaf_range(std::int64_t count, int num_leaves, int leaf) {
  return {count * leaf / num_leaves, count * (leaf + 1) / num_leaves};
}

}  // namespace redspine
