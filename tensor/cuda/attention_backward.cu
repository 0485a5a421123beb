// Two kernels, so that every sum stays in one block and needs no atomics: one for the gradients of
// queries, with one block per tile of queries, and one for those of keys and values, with one block
// per tile of keys. Both compute the scores again.
#include "tensor/cuda/attention.h"
#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/exact_mode.h"

namespace redspine::cuda {
namespace {

template <class T>
struct AttentionGradient {
  T* dqkv;
  float* dot_context;  // [B, h, T]: dcontext * context, summed over the head
  const T* dcontext;
  const T* qkv;
  const T* context;
  const float* log_sum_exp;
  const std::int64_t* samples;  // read where dropout is active
  HeadGeometry heads;
  DropoutRule dropout;
};

// What a thread's queries have besides their scores.
struct QueryStatistics {
  float log_sum_exp[kMicro];
  float dot_context[kMicro];
};

// The place of a tile of scores, and what all of them are multiplied by.
struct ScoreTile {
  std::int64_t query;
  std::int64_t key;
  ScoreCounters counters;
  float scale;
};

// In: scores = Q K^T and dscores = dcontext V^T. Out: dropped(P) and dS / sqrt(K), both 0 where the
// query does not see the key.
__device__ void differentiate(MicroTile& scores, MicroTile& dscores, const QueryStatistics& queries,
                              const ScoreTile& tile, const DropoutRule& dropout) {
  const std::int64_t first_key = tile.key + micro_column();
#pragma unroll
  for (int i = 0; i < kMicro; ++i) {
    const std::int64_t query = tile.query + micro_row() + i;
    Floats<4> factors{{1.0F, 1.0F, 1.0F, 1.0F}};
    if (dropout.active()) factors = score_factors(dropout, tile.counters, query, first_key);
#pragma unroll
    for (int j = 0; j < kMicro; ++j) {
      const bool is_visible = first_key + j <= query;
      const float p = is_visible ? expf(scores[i][j] * tile.scale - queries.log_sum_exp[i]) : 0.0F;
      const float dp = dscores[i][j] * factors.values[j] - queries.dot_context[i];
      scores[i][j] = p * factors.values[j];
      dscores[i][j] = is_visible ? p * dp * tile.scale : 0.0F;
    }
  }
}

template <class T>
__device__ QueryStatistics load_statistics(const AttentionGradient<T>& op, std::int64_t begin,
                                           int count) {
  QueryStatistics statistics{};
#pragma unroll
  for (int i = 0; i < kMicro; ++i) {
    const int query = micro_row() + i;
    if (query >= count) continue;
    statistics.log_sum_exp[i] = op.log_sum_exp[begin + query];
    statistics.dot_context[i] = op.dot_context[begin + query];
  }
  return statistics;
}

// dot_context of this block's queries, in all threads that share them.
template <int width, class T>
__device__ void dot_rows(float (&dots)[kMicro], const RowTile<const T>& a,
                         const RowTile<const T>& b, std::int64_t head_size) {
#pragma unroll
  for (int i = 0; i < kMicro; ++i) {
    const int row = micro_row() + i;
    float dot = 0.0F;
    if (row < a.count) {
      constexpr std::int64_t kStep = std::int64_t{kSide} * width;
      for (std::int64_t d = std::int64_t{threadIdx.x % kSide} * width; d < head_size; d += kStep) {
        const Floats<width> left = load<width>(a.row(row) + d);
        const Floats<width> right = load<width>(b.row(row) + d);
#pragma unroll
        for (int j = 0; j < width; ++j) dot += left.values[j] * right.values[j];
      }
    }
    dots[i] = reduce_lanes<kSide>(dot, Plus{});
  }
}

template <class T, int width, int columns>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    query_gradient_kernel(AttentionGradient<T> op) {
  auto& shared = *shared_memory<AttentionShared<columns>>();
  const std::int64_t first = std::int64_t{gridDim.x - 1 - blockIdx.x} * kTile;
  const std::int64_t head = blockIdx.y % op.heads.num_heads;
  const ColumnChunk chunk{blockIdx.y / op.heads.num_heads * columns, op.heads.head_size};
  const std::int64_t row = blockIdx.z;
  const std::int64_t kv_head = op.heads.kv_head_of(head);
  const auto queries = op.heads.query(op.qkv, row, head).tile(first);
  const auto dcontext = op.heads.context(op.dcontext, row, head).tile(first);
  const auto keys = op.heads.key(op.qkv, row, kv_head);
  const auto values = op.heads.value(op.qkv, row, kv_head);
  const ScoreCounters counters{op.dropout.active() ? op.samples[row] : 0,
                               op.heads.first_query + head};

  QueryStatistics statistics{};
  dot_rows<width>(statistics.dot_context, dcontext,
                  op.heads.context(op.context, row, head).tile(first), op.heads.head_size);
  const std::int64_t begin = op.heads.statistics(row, head) + first;
#pragma unroll
  for (int i = 0; i < kMicro; ++i) {
    const int query = micro_row() + i;
    if (query >= queries.count) continue;
    statistics.log_sum_exp[i] = op.log_sum_exp[begin + query];
    if (chunk.first == 0 && micro_column() == 0) {
      op.dot_context[begin + query] = statistics.dot_context[i];
    }
  }

  MicroRows<columns> dqueries{};
  for (std::int64_t key = 0; key < first + queries.count; key += kTile) {
    MicroTile scores;
    MicroTile dscores;
    multiply_rows<width>(scores, shared, queries, keys.tile(key), op.heads.head_size);
    multiply_rows<width>(dscores, shared, dcontext, values.tile(key), op.heads.head_size);
    differentiate(scores, dscores, statistics, {first, key, counters, op.heads.score_scale},
                  op.dropout);
#pragma unroll
    for (int i = 0; i < kMicro; ++i) {
#pragma unroll
      for (int j = 0; j < kMicro; ++j) {
        shared.tile[micro_column() + j][micro_row() + i] = dscores[i][j];
      }
    }
    accumulate_rows<width>(dqueries, shared, keys.tile(key), chunk);
  }
  store_rows<width, columns>(op.heads.query(op.dqkv, row, head).tile(first), dqueries, chunk);
}

// Writes a thread's part of the tile, by query and key.
template <int columns>
__device__ void store_tile(AttentionShared<columns>& shared, const MicroTile& values) {
#pragma unroll
  for (int i = 0; i < kMicro; ++i) {
    Floats<kMicro> four;
#pragma unroll
    for (int j = 0; j < kMicro; ++j) four.values[j] = values[i][j];
    store(&shared.tile[micro_row() + i][micro_column()], four);
  }
}

// Heads, then tiles of queries, each ascending: the order of every sum.
template <class T, int width, int columns>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    key_value_gradient_kernel(AttentionGradient<T> op) {
  auto& shared = *shared_memory<AttentionShared<columns>>();
  const std::int64_t first = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t kv_head = blockIdx.y % op.heads.num_kv_heads;
  const ColumnChunk chunk{blockIdx.y / op.heads.num_kv_heads * columns, op.heads.head_size};
  const std::int64_t row = blockIdx.z;
  const auto keys = op.heads.key(op.qkv, row, kv_head).tile(first);
  const auto values = op.heads.value(op.qkv, row, kv_head).tile(first);

  MicroRows<columns> dkeys{};
  MicroRows<columns> dvalues{};
  const std::int64_t end_head = op.heads.first_head_of(kv_head + 1);
  for (std::int64_t head = op.heads.first_head_of(kv_head); head < end_head; ++head) {
    const ScoreCounters counters{op.dropout.active() ? op.samples[row] : 0,
                                 op.heads.first_query + head};
    for (std::int64_t query = first; query < op.heads.length; query += kTile) {
      const auto queries = op.heads.query(op.qkv, row, head).tile(query);
      const auto dcontext = op.heads.context(op.dcontext, row, head).tile(query);
      const QueryStatistics statistics =
          load_statistics(op, op.heads.statistics(row, head) + query, queries.count);
      MicroTile scores;
      MicroTile dscores;
      multiply_rows<width>(scores, shared, queries, keys, op.heads.head_size);
      multiply_rows<width>(dscores, shared, dcontext, values, op.heads.head_size);
      differentiate(scores, dscores, statistics, {query, first, counters, op.heads.score_scale},
                    op.dropout);
      store_tile(shared, scores);
      accumulate_rows<width>(dvalues, shared, dcontext, chunk);
      store_tile(shared, dscores);
      accumulate_rows<width>(dkeys, shared, queries, chunk);
    }
  }
  store_rows<width, columns>(op.heads.key(op.dqkv, row, kv_head).tile(first), dkeys, chunk);
  store_rows<width, columns>(op.heads.value(op.dqkv, row, kv_head).tile(first), dvalues, chunk);
}

}  // namespace

void CudaKernels::run(const AttentionBackward& op) const {
  reject_order("AttentionBackward", op.order != nullptr);
  if (op.qkv.count() == 0) return;
  if (fused_attention_ != nullptr && fused_attention_->run(op)) return;
  auto* dot_context = scratch_.elements<float>(op.log_sum_exp_BhT.count());
  with_attention_kernel(
      op.heads, op.qkv.dtype(),
      [&]<class T, int width, int columns>() {
        const AttentionGradient<T> gradient{.dqkv = elements<T>(op.dqkv),
                                            .dot_context = dot_context,
                                            .dcontext = elements<T>(op.dcontext),
                                            .qkv = elements<T>(op.qkv),
                                            .context = elements<T>(op.context),
                                            .log_sum_exp = elements<float>(op.log_sum_exp_BhT),
                                            .samples = elements<std::int64_t>(op.dropout.samples_B),
                                            .heads = HeadGeometry(op.heads, op.qkv.dim(1)),
                                            .dropout = DropoutRule(op.dropout)};
        launch(stream_, attention_blocks<columns>(op.heads, op.heads.num_heads, op.qkv),
               query_gradient_kernel<T, width, columns>, gradient);
        launch(stream_, attention_blocks<columns>(op.heads, op.heads.num_kv_heads, op.qkv),
               key_value_gradient_kernel<T, width, columns>, gradient);
      },
      op.dqkv, op.dcontext, op.qkv, op.context);
}

}  // namespace redspine::cuda
