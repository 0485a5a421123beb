// Causal attention as its definition reads, in double and without blocks: what the attention
// kernels are compared to. Local.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/kernels.h"

namespace redspine {

/// One attention problem: shapes, heads, and dropout with one global sample number per batch
/// row.
struct AttentionCase {
  std::int64_t length;
  HeadLayout heads;
  std::vector<std::int64_t> samples = {0};
  float probability = 0.0F;
  std::uint64_t key = 0x0123456789ABCDEF;

  std::int64_t batch() const { return static_cast<std::int64_t>(samples.size()); }
  std::int64_t qkv_size() const {
    return (heads.num_heads + 2 * heads.num_kv_heads) * heads.head_size;
  }
  std::int64_t context_size() const { return heads.num_heads * heads.head_size; }
};

/// As many key and value heads as query heads, all of the model's.
inline HeadLayout plain_heads(std::int64_t num_heads, std::int64_t head_size) {
  return {.num_heads = num_heads,
          .num_kv_heads = num_heads,
          .head_size = head_size,
          .queries_per_kv = 1,
          .first_query = 0};
}

/// What a probability is multiplied by: 0 or 1 / (1 - probability).
double dropout_factor(const AttentionCase& c, std::int64_t row, std::int64_t head,
                      std::int64_t query, std::int64_t key);

struct AttentionResult {
  std::vector<double> context;      // [B, T, h * K]
  std::vector<double> log_sum_exp;  // [B, h, T]
};

AttentionResult reference_attention(const AttentionCase& c, const std::vector<double>& qkv);

/// dqkv [B, T, (h + 2g) * K] of sum(context * dcontext).
std::vector<double> reference_attention_gradient(const AttentionCase& c,
                                                 const std::vector<double>& qkv,
                                                 const std::vector<double>& dcontext);

}  // namespace redspine
