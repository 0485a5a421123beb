// Which heads of attention a rank has, where they lie, and in which order exact mode adds them up.
// Plain values; local.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace redspine {

/// Causal attention in packed form. A row of `qkv` holds h query heads, then g key heads, then g
/// value heads, each of size K. Query heads of this rank are the global ones from `first_query` on.
struct HeadLayout {
  std::int64_t num_heads;       // h
  std::int64_t num_kv_heads;    // g
  std::int64_t head_size;       // K
  std::int64_t queries_per_kv;  // H / G, of the whole model
  std::int64_t first_query;     // global number of head 0

  /// The key and value head that a query head uses; both are numbers of this rank.
  constexpr std::int64_t kv_head_of(std::int64_t head) const {
    return (first_query + head) / queries_per_kv - first_query / queries_per_kv;
  }
  /// The query heads that use a key and value head are those from first_head_of(kv_head) up to
  /// first_head_of(kv_head + 1).
  constexpr std::int64_t first_head_of(std::int64_t kv_head) const {
    const std::int64_t global = (first_query / queries_per_kv + kv_head) * queries_per_kv;
    return std::clamp(global - first_query, std::int64_t{0}, num_heads);
  }
};

/// Some of the query heads that share a key and value head, up to `end_head` of this rank: a leaf
/// of the sums over all of them, in the order of InnerPart.
struct HeadGroup {
  std::int64_t end_head;
  int num_merges;
};

/// The order of the sums of dK and dV in exact mode.
struct HeadOrder {
  std::vector<std::vector<HeadGroup>> groups;  // [kv head]
  std::vector<int> num_sums;                   // [kv head]: what is left on its stack
  int depth;                                   // the most sums of a head at once
};

}  // namespace redspine
