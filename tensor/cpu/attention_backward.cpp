#include "tensor/cpu/attention.h"
#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/dropout.h"
#include "tensor/cpu/vector_math.h"

namespace redspine {
namespace {

void fill_with_zeros(Block<float> block) {
  for (std::int64_t r = 0; r < block.rows; ++r) std::fill_n(block.row(r), block.cols, 0.0F);
}

float dot(const float* a, const float* b, std::int64_t count) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// One row of a block. In: scores = S and dscores = dcontext V^T. Out: dropped(P) and
// dS / sqrt(K), both 0 where the query does not see the key.
struct ScoreRow {
  float* scores;
  float* dscores;
  std::int64_t num_visible;
  std::int64_t num_keys;
};

// What one query has besides its row of scores.
struct QueryStatistics {
  float log_sum_exp;
  float dot_context;  // dcontext * context, summed over the head
};

void differentiate(const ScoreRow& row, const QueryStatistics& query, const float* factors,
                   float score_scale) {
  float* scores = row.scores;
  float* dscores = row.dscores;
#pragma omp simd
  for (std::int64_t i = 0; i < row.num_visible; ++i) {
    const float p = vector_exp(scores[i] - query.log_sum_exp);
    dscores[i] = p * (dscores[i] * factors[i] - query.dot_context) * score_scale;
    scores[i] = p * factors[i];
  }
  std::fill(scores + row.num_visible, scores + row.num_keys, 0.0F);
  std::fill(dscores + row.num_visible, dscores + row.num_keys, 0.0F);
}

// All gradients that flow through one key and value head of one sample. Blocks of keys, then
// heads, then blocks of queries, each ascending: the order of every sum.
void differentiate(const AttentionBackward& op, std::int64_t sample, std::int64_t kv_head) {
  const std::int64_t length = op.qkv.dim(1);
  const PackedHeads heads(op.heads, length);
  const auto* qkv = op.qkv.data<float>();
  auto* dqkv = op.dqkv.data<float>();
  const float scale = heads.score_scale();
  alignas(64) float score_storage[kQueryBlock * kKeyBlock];
  alignas(64) float dscore_storage[kQueryBlock * kKeyBlock];
  alignas(64) float factors[kKeyBlock];
  std::fill_n(factors, kKeyBlock, 1.0F);

  for (std::int64_t key = 0; key < length; key += kKeyBlock) {
    const std::int64_t key_end = std::min(key + kKeyBlock, length);
    fill_with_zeros(heads.key(dqkv, sample, kv_head).rows(key, key_end - key));
    fill_with_zeros(heads.value(dqkv, sample, kv_head).rows(key, key_end - key));
    for (std::int64_t head = heads.first_head_of(kv_head); head < heads.first_head_of(kv_head + 1);
         ++head) {
      const ScoreDropout dropout(op.dropout, sample, op.heads.first_query + head);
      const float* log_sum_exp = op.log_sum_exp_BhT.data<float>() + heads.statistics(sample, head);
      for (std::int64_t first = key; first < length; first += kQueryBlock) {
        const std::int64_t num_queries = std::min(kQueryBlock, length - first);
        const std::int64_t num_keys = std::min(key_end, first + num_queries) - key;
        const auto queries = heads.query(qkv, sample, head).rows(first, num_queries);
        const auto keys = heads.key(qkv, sample, kv_head).rows(key, num_keys);
        const auto values = heads.value(qkv, sample, kv_head).rows(key, num_keys);
        const auto context =
            heads.context(op.context.data<float>(), sample, head).rows(first, num_queries);
        const auto dcontext =
            heads.context(op.dcontext.data<float>(), sample, head).rows(first, num_queries);
        const Block<float> scores{score_storage, num_queries, num_keys, kKeyBlock};
        const Block<float> dscores{dscore_storage, num_queries, num_keys, kKeyBlock};

        multiply<Transpose::no, Transpose::yes>(scores, queries, keys, scale, 0.0F);
        multiply<Transpose::no, Transpose::yes>(dscores, dcontext, values, 1.0F, 0.0F);
        for (std::int64_t r = 0; r < num_queries; ++r) {
          const std::int64_t num_visible = std::min(num_keys, first + r - key + 1);
          if (dropout.active()) dropout.fill(factors, first + r, key, num_visible);
          differentiate(
              {scores.row(r), dscores.row(r), num_visible, num_keys},
              {log_sum_exp[first + r], dot(dcontext.row(r), context.row(r), context.cols)}, factors,
              scale);
        }
        multiply<Transpose::yes, Transpose::no>(
            heads.value(dqkv, sample, kv_head).rows(key, num_keys), scores, dcontext, 1.0F, 1.0F);
        multiply<Transpose::yes, Transpose::no>(
            heads.key(dqkv, sample, kv_head).rows(key, num_keys), dscores, queries, 1.0F, 1.0F);
        multiply<Transpose::no, Transpose::no>(
            heads.query(dqkv, sample, head).rows(first, num_queries), dscores, keys, 1.0F,
            key > 0 ? 1.0F : 0.0F);
      }
    }
  }
}

}  // namespace

void CpuKernels::run(const AttentionBackward& op) const {
  const std::int64_t num_samples = op.qkv.dim(0);
  // A key and value head is the smallest piece whose sums need no other thread.
#pragma omp parallel for collapse(2) schedule(dynamic)
  for (std::int64_t sample = 0; sample < num_samples; ++sample) {
    for (std::int64_t kv_head = 0; kv_head < op.heads.num_kv_heads; ++kv_head) {
      differentiate(op, sample, kv_head);
    }
  }
}

}  // namespace redspine
