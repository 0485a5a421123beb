#include "tensor/cpu/attention.h"

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/dropout.h"
#include "tensor/cpu/vector_math.h"

namespace redspine {
namespace {

float max_of(const float* x, std::int64_t count) {
  float max = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : max)
  for (std::int64_t i = 0; i < count; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

// x = exp(x - max); returns the sum. A NaN that max_of passed over arrives here.
float exp_and_sum(float* x, std::int64_t count, float max) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = vector_exp(x[i] - max);
    sum += x[i];
  }
  return sum;
}

void scale(float* x, std::int64_t count, float factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

void multiply(float* x, const float* factors, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factors[i];
}

// Of each query of a block, over the keys seen so far: the largest score, and the sum of
// exp(score - max).
struct SoftmaxRows {
  float max[kQueryBlock];
  float sum[kQueryBlock] = {};

  SoftmaxRows() { std::fill_n(max, kQueryBlock, -std::numeric_limits<float>::infinity()); }

  // Turns a row of scores into exp(score - max), 0 behind the first `num_visible`, and returns
  // what the sums so far are to be multiplied by, since max may have grown.
  float update(std::int64_t r, float* scores, std::int64_t num_visible, std::int64_t num_keys) {
    const float block_max = max_of(scores, num_visible);
    const float new_max = block_max > max[r] ? block_max : max[r];
    const float correction = vector_exp(max[r] - new_max);
    sum[r] = sum[r] * correction + exp_and_sum(scores, num_visible, new_max);
    max[r] = new_max;
    std::fill(scores + num_visible, scores + num_keys, 0.0F);
    return correction;
  }
};

// The queries [first, first + kQueryBlock) of one head of one sample, and all keys they may see.
void attend(const Attention& op, std::int64_t sample, std::int64_t head, std::int64_t first) {
  const std::int64_t length = op.qkv.dim(1);
  const PackedHeads heads(op.heads, length);
  const std::int64_t kv_head = heads.kv_head_of(head);
  const auto* qkv = op.qkv.data<float>();
  const auto keys = heads.key(qkv, sample, kv_head);
  const auto values = heads.value(qkv, sample, kv_head);
  const std::int64_t num_queries = std::min(kQueryBlock, length - first);
  const std::int64_t end = first + num_queries;
  const auto queries = heads.query(qkv, sample, head).rows(first, num_queries);
  const auto context =
      heads.context(op.context.data<float>(), sample, head).rows(first, num_queries);
  const ScoreDropout dropout(op.dropout, sample, op.heads.first_query + head);

  SoftmaxRows softmax;
  alignas(64) float score_storage[kQueryBlock * kKeyBlock];
  alignas(64) float factors[kKeyBlock];
  for (std::int64_t key = 0; key < end; key += kKeyBlock) {
    const std::int64_t num_keys = std::min(kKeyBlock, end - key);
    const Block<float> scores{score_storage, num_queries, num_keys, kKeyBlock};
    multiply<Transpose::no, Transpose::yes>(scores, queries, keys.rows(key, num_keys),
                                            heads.score_scale(), 0.0F);
    for (std::int64_t r = 0; r < num_queries; ++r) {
      const std::int64_t num_visible = std::min(num_keys, first + r - key + 1);
      const float correction = softmax.update(r, scores.row(r), num_visible, num_keys);
      if (key > 0) scale(context.row(r), context.cols, correction);
      if (dropout.active()) {
        dropout.fill(factors, first + r, key, num_visible);
        multiply(scores.row(r), factors, num_visible);
      }
    }
    multiply<Transpose::no, Transpose::no>(context, scores, values.rows(key, num_keys), 1.0F,
                                           key > 0 ? 1.0F : 0.0F);
  }

  float* log_sum_exp = op.log_sum_exp_BhT.data<float>() + heads.statistics(sample, head) + first;
  for (std::int64_t r = 0; r < num_queries; ++r) {
    scale(context.row(r), context.cols, 1.0F / softmax.sum[r]);
    log_sum_exp[r] = softmax.max[r] + std::log(softmax.sum[r]);
  }
}

}  // namespace

void CpuKernels::run(const Attention& op) const {
  const std::int64_t num_samples = op.qkv.dim(0);
  const std::int64_t num_blocks = (op.qkv.dim(1) + kQueryBlock - 1) / kQueryBlock;
  // Late blocks see the most keys: they start first, so that the threads end together.
#pragma omp parallel for collapse(3) schedule(dynamic)
  for (std::int64_t sample = 0; sample < num_samples; ++sample) {
    for (std::int64_t head = 0; head < op.heads.num_heads; ++head) {
      for (std::int64_t block = 0; block < num_blocks; ++block) {
        attend(op, sample, head, (num_blocks - 1 - block) * kQueryBlock);
      }
    }
  }
}

}  // namespace redspine
