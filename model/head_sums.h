// How attention's heads are shared over the tensor axis, and in exact mode the order in which the
// gradients of a key/value head are added up over the query heads that read it. Local.
#pragma once

#include <optional>
#include <vector>

#include "model/config.h"
#include "model/parameters.h"
#include "parallel/sum_tree.h"
#include "tensor/kernels.h"

namespace redspine {

HeadPartition local_heads(const ModelConfig& config, TensorRank rank);

/// Whether some key/value head is read by query heads of several ranks. That is so for all ranks or
/// for none, so that they agree on the collectives to call.
bool shares_kv_heads(const ModelConfig& config, TensorRank rank);

/// [leaf]: the key/value heads that belong to a leaf, which is that of their first query head.
std::vector<Range> kv_head_leaves(const ModelConfig& config, TensorRank rank);

struct HeadSums {
  HeadOrder own;                     // of this rank's query heads
  std::vector<SumOrder> over_ranks;  // [global kv head]; none where no head is shared
  std::int64_t first_kv_head;        // of this rank

  bool is_shared() const { return !over_ranks.empty(); }
  /// Sums of all heads that this rank has.
  std::int64_t num_own() const;
};

/// Nothing outside of exact mode.
std::optional<HeadSums> head_sums(const ModelConfig& config, TensorRank rank);

}  // namespace redspine
