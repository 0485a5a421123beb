#include <cmath>

#include "tensor/cuda/attention.h"
#include "tensor/cuda/cuda_kernels.h"

namespace redspine::cuda {

HeadGeometry::HeadGeometry(const HeadLayout& heads, std::int64_t sequence_length)
    : HeadLayout(heads),
      length(sequence_length),
      score_scale(1.0F / std::sqrt(static_cast<float>(heads.head_size))) {}

namespace {

template <class T>
struct AttentionForward {
  T* context;
  float* log_sum_exp;
  const T* qkv;
  const std::int64_t* samples;  // read where dropout is active
  HeadGeometry heads;
  DropoutRule dropout;
};

// Of each of a thread's queries, over the keys seen so far: the largest score, and this thread's
// part of the sum of exp(score - max).
struct SoftmaxRows {
  float max[kMicro];
  float sum[kMicro];

  __device__ SoftmaxRows() {
#pragma unroll
    for (int i = 0; i < kMicro; ++i) {
      max[i] = -INFINITY;
      sum[i] = 0.0F;
    }
  }

  // Turns query i's scores, -inf for keys that it does not see, into exp(score - max), and returns
  // what the sums so far are to be multiplied by, since max may have grown.
  __device__ float update(int i, float (&scores)[kMicro]) {
    float largest = scores[0];
#pragma unroll
    for (int j = 1; j < kMicro; ++j) largest = fmaxf(largest, scores[j]);
    const float new_max = fmaxf(max[i], reduce_lanes<kSide>(largest, Larger{}));
    const float correction = expf(max[i] - new_max);
    max[i] = new_max;
    sum[i] *= correction;
#pragma unroll
    for (int j = 0; j < kMicro; ++j) {
      scores[j] = expf(scores[j] - new_max);
      sum[i] += scores[j];
    }
    return correction;
  }
};

// A block has a tile of queries of a head, a chunk of its columns, and all keys that they see.
template <class T, int width, int columns>
__global__ void __launch_bounds__(kAttentionThreads, 1) attention_kernel(AttentionForward<T> op) {
  auto& shared = *shared_memory<AttentionShared<columns>>();
  // Late tiles see the most keys: they start first, so that all end together.
  const std::int64_t first = std::int64_t{gridDim.x - 1 - blockIdx.x} * kTile;
  const std::int64_t head = blockIdx.y % op.heads.num_heads;
  const ColumnChunk chunk{blockIdx.y / op.heads.num_heads * columns, op.heads.head_size};
  const std::int64_t row = blockIdx.z;
  const std::int64_t kv_head = op.heads.kv_head_of(head);
  const auto queries = op.heads.query(op.qkv, row, head).tile(first);
  const auto keys = op.heads.key(op.qkv, row, kv_head);
  const auto values = op.heads.value(op.qkv, row, kv_head);
  const ScoreCounters counters{op.dropout.active() ? op.samples[row] : 0,
                               op.heads.first_query + head};

  SoftmaxRows softmax;
  MicroRows<columns> context{};
  for (std::int64_t key = 0; key < first + queries.count; key += kTile) {
    MicroTile scores;
    multiply_rows<width>(scores, shared, queries, keys.tile(key), op.heads.head_size);
#pragma unroll
    for (int i = 0; i < kMicro; ++i) {
      const std::int64_t query = first + micro_row() + i;
      const std::int64_t first_key = key + micro_column();
#pragma unroll
      for (int j = 0; j < kMicro; ++j) {
        const bool is_visible = first_key + j <= query;
        scores[i][j] = is_visible ? scores[i][j] * op.heads.score_scale : -INFINITY;
      }
      const float correction = softmax.update(i, scores[i]);
#pragma unroll
      for (float& value : context[i]) value *= correction;
      if (op.dropout.active()) {
        const Floats<4> factors = score_factors(op.dropout, counters, query, first_key);
#pragma unroll
        for (int j = 0; j < kMicro; ++j) scores[i][j] *= factors.values[j];
      }
#pragma unroll
      for (int j = 0; j < kMicro; ++j)
        shared.tile[micro_column() + j][micro_row() + i] = scores[i][j];
    }
    accumulate_rows<width>(context, shared, values.tile(key), chunk);
  }

  float* log_sum_exp = op.log_sum_exp + op.heads.statistics(row, head) + first;
#pragma unroll
  for (int i = 0; i < kMicro; ++i) {
    const float sum = reduce_lanes<kSide>(softmax.sum[i], Plus{});
#pragma unroll
    for (float& value : context[i]) value *= 1.0F / sum;
    if (chunk.first == 0 && micro_column() == 0 && micro_row() + i < queries.count) {
      log_sum_exp[micro_row() + i] = softmax.max[i] + logf(sum);
    }
  }
  store_rows<width, columns>(op.heads.context(op.context, row, head).tile(first), context, chunk);
}

}  // namespace

void CudaKernels::run(const Attention& op) const {
  if (op.qkv.count() == 0) return;
  if (fused_attention_ != nullptr && fused_attention_->run(op)) return;
  with_attention_kernel(
      op.heads, op.qkv.dtype(),
      [&]<class T, int width, int columns>() {
        const AttentionForward<T> forward{.context = elements<T>(op.context),
                                          .log_sum_exp = elements<float>(op.log_sum_exp_BhT),
                                          .qkv = elements<T>(op.qkv),
                                          .samples = elements<std::int64_t>(op.dropout.samples_B),
                                          .heads = HeadGeometry(op.heads, op.qkv.dim(1)),
                                          .dropout = DropoutRule(op.dropout)};
        launch(stream_, attention_blocks<columns>(op.heads, op.heads.num_heads, op.qkv),
               attention_kernel<T, width, columns>, forward);
      },
      op.context, op.qkv);
}

}  // namespace redspine::cuda
