#include "model/head_sums.h"

#include <algorithm>
#include <numeric>

namespace redspine {
namespace {

std::int64_t queries_per_kv(const ModelConfig& config) {
  return config.num_heads / config.num_kv_heads;
}

// The query heads of a leaf that read a key/value head.
Range readers_in(const Range& leaf, std::int64_t kv_head, std::int64_t num_readers) {
  const std::int64_t begin = std::clamp(kv_head * num_readers, leaf.begin, leaf.end);
  return {begin, std::clamp((kv_head + 1) * num_readers, begin, leaf.end)};
}

// The tree of the leaves that have readers of a head.
SumTree tree_of(const ModelConfig& config, TensorRank rank, std::int64_t kv_head) {
  std::vector<bool> is_empty;
  for (const Range& leaf : rank.leaves(config.num_heads)) {
    is_empty.push_back(readers_in(leaf, kv_head, queries_per_kv(config)).size() == 0);
  }
  return SumTree(rank.num_leaves, std::move(is_empty));
}

}  // namespace

HeadPartition local_heads(const ModelConfig& config, TensorRank rank) {
  return partition_heads(config.num_heads, config.num_kv_heads, rank.num_ranks, rank.rank);
}

bool shares_kv_heads(const ModelConfig& config, TensorRank rank) {
  return local_heads(config, rank).query_heads.size() % queries_per_kv(config) != 0;
}

std::vector<Range> kv_head_leaves(const ModelConfig& config, TensorRank rank) {
  const std::int64_t num_readers = queries_per_kv(config);
  std::vector<Range> leaves;
  for (const Range& queries : rank.leaves(config.num_heads)) {
    leaves.push_back({(queries.begin + num_readers - 1) / num_readers,
                      (queries.end + num_readers - 1) / num_readers});
  }
  return leaves;
}

std::int64_t HeadSums::num_own() const {
  return std::accumulate(own.num_sums.begin(), own.num_sums.end(), std::int64_t{0});
}

std::optional<HeadSums> head_sums(const ModelConfig& config, TensorRank rank) {
  if (!rank.is_exact()) return std::nullopt;
  const HeadPartition heads = local_heads(config, rank);
  const std::vector<Range> query_leaves = rank.leaves(config.num_heads);
  const Range own_leaves = leaves_of(rank.num_leaves, rank.num_ranks, rank.rank);
  HeadSums sums{.own = {.groups = {}, .num_sums = {}, .depth = 0},
                .over_ranks = {},
                .first_kv_head = heads.kv_heads.begin};
  for (std::int64_t kv = heads.kv_heads.begin; kv < heads.kv_heads.end; ++kv) {
    const StackSum stack = tree_of(config, rank, kv).of_leaves(own_leaves);
    std::vector<HeadGroup>& groups = sums.own.groups.emplace_back();
    for (std::int64_t leaf = own_leaves.begin; leaf < own_leaves.end; ++leaf) {
      const Range readers =
          readers_in(query_leaves[static_cast<std::size_t>(leaf)], kv, queries_per_kv(config));
      if (readers.size() == 0) continue;
      groups.push_back({readers.end - heads.query_heads.begin, stack.num_merges[groups.size()]});
    }
    sums.own.num_sums.push_back(static_cast<int>(stack.nodes.size()));
    sums.own.depth = std::max(sums.own.depth, stack.depth);
  }
  if (!shares_kv_heads(config, rank)) return sums;
  for (std::int64_t kv = 0; kv < config.num_kv_heads; ++kv) {
    sums.over_ranks.push_back(tree_of(config, rank, kv).over_ranks(rank.num_ranks));
  }
  return sums;
}

}  // namespace redspine
