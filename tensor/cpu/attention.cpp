#include "tensor/cpu/attention.h"

#include "tensor/cpu/aligned_buffer.h"
#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/dropout.h"
#include "tensor/cpu/interleaved_sum.h"
#include "tensor/cpu/vector_math.h"
#include "tensor/portable_math.h"

namespace redspine {
namespace {

float max_of(const float* x, std::int64_t count) {
  float max = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : max)
  for (std::int64_t i = 0; i < count; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

// x = exp((x - max) * scale); returns the sum. A NaN that max_of passed over arrives here.
float exp_and_sum(float* x, std::int64_t count, float max, float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] = vector_exp((x[i] - max) * scale);
  return interleaved_sum(count, [=](std::int64_t i) { return x[i]; });
}

void multiply(float* x, std::int64_t count, float factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

void multiply(float* x, const float* factors, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factors[i];
}

// Of each query of a block, over the keys seen so far: the largest product with a key, and the sum
// of exp((product - max) * scale).
struct SoftmaxRows {
  float scale;
  float max[kQueryBlock];
  float sum[kQueryBlock] = {};

  explicit SoftmaxRows(float score_scale) : scale(score_scale) {
    std::fill_n(max, kQueryBlock, -std::numeric_limits<float>::infinity());
  }

  // Turns a row of products into exp((product - max) * scale), 0 behind the first `num_visible`,
  // and returns what the sums so far are to be multiplied by, since max may have grown.
  float update(std::int64_t r, float* scores, std::int64_t num_visible, std::int64_t num_keys) {
    const float block_max = max_of(scores, num_visible);
    const float new_max = block_max > max[r] ? block_max : max[r];
    const float correction = vector_exp((max[r] - new_max) * scale);
    sum[r] = sum[r] * correction + exp_and_sum(scores, num_visible, new_max, scale);
    max[r] = new_max;
    std::fill(scores + num_visible, scores + num_keys, 0.0F);
    return correction;
  }
};

// What a thread works in.
struct Workspace {
  explicit Workspace(std::int64_t head_size)
      : scores(kQueryBlock * kKeyBlock),
        keys(kKeyBlock * head_size),
        values(kKeyBlock * padded_head_size(head_size)) {}

  AlignedBuffer scores;
  AlignedBuffer keys;    // packed for KeyProduct
  AlignedBuffer values;  // packed for HeadProduct
};

struct QueryBlock {
  std::int64_t sample;
  std::int64_t head;
  std::int64_t first;
};

// The queries [first, first + kQueryBlock) of one head of one sample, and all keys they may see.
void attend(const Attention& op, const QueryBlock& block, const Workspace& workspace) {
  const auto [sample, head, first] = block;
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

  SoftmaxRows softmax(heads.score_scale());
  alignas(64) float factors[kKeyBlock];
  for (std::int64_t key = 0; key < end; key += kKeyBlock) {
    const std::int64_t num_keys = std::min(kKeyBlock, end - key);
    const MatrixBlock<float> scores{workspace.scores.data(), num_queries, num_keys, kKeyBlock};
    const ScorePlace place{first, key};
    KeyProduct::pack(workspace.keys.data(), keys.rows(key, num_keys).by_rows(), num_keys,
                     keys.head_size);
    HeadProduct::pack(workspace.values.data(), values.rows(key, num_keys).by_columns(),
                      values.head_size, num_keys);
    multiply_by_keys(scores, queries, workspace.keys.data(), place);
    for (std::int64_t r = 0; r < num_queries; ++r) {
      const std::int64_t num_visible = place.num_visible(r, num_keys);
      const float correction = softmax.update(r, scores.row(r), num_visible, num_keys);
      if (key > 0) multiply(context.row(r), context.cols, correction);
      if (dropout.active()) {
        dropout.fill(factors, first + r, key, num_visible);
        multiply(scores.row(r), factors, num_visible);
      }
    }
    multiply_by_heads(context, scores, workspace.values.data(), place,
                      key > 0 ? Update::accumulate : Update::write);
  }

  float* log_sum_exp = op.log_sum_exp_BhT.data<float>() + heads.statistics(sample, head) + first;
  for (std::int64_t r = 0; r < num_queries; ++r) {
    multiply(context.row(r), context.cols, 1.0F / softmax.sum[r]);
    log_sum_exp[r] = softmax.max[r] * softmax.scale +
                     static_cast<float>(portable::log(static_cast<double>(softmax.sum[r])));
  }
}

}  // namespace

void CpuKernels::run(const Attention& op) const {
  const std::int64_t num_samples = op.qkv.dim(0);
  const std::int64_t num_blocks = (op.qkv.dim(1) + kQueryBlock - 1) / kQueryBlock;
  // Late blocks see the most keys: they start first, so that the threads end together.
#pragma omp parallel
  {
    const Workspace workspace(op.heads.head_size);
#pragma omp for collapse(3) schedule(dynamic)
    for (std::int64_t sample = 0; sample < num_samples; ++sample) {
      for (std::int64_t head = 0; head < op.heads.num_heads; ++head) {
        for (std::int64_t block = 0; block < num_blocks; ++block) {
          attend(op, {sample, head, (num_blocks - 1 - block) * kQueryBlock}, workspace);
        }
      }
    }
  }
}

}  // namespace redspine
