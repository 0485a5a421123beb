#include <numeric>
#include <vector>

#include "tensor/cpu/aligned_buffer.h"
#include "tensor/cpu/attention.h"
#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/dropout.h"
#include "tensor/cpu/interleaved_sum.h"
#include "tensor/cpu/parallel_for.h"
#include "tensor/cpu/vector_math.h"

namespace redspine {
namespace {

void fill_with_zeros(MatrixBlock<float> block) {
  for (std::int64_t r = 0; r < block.rows; ++r) std::fill_n(block.row(r), block.cols, 0.0F);
}

float dot(const float* a, const float* b, std::int64_t count) {
  return interleaved_sum(count, [=](std::int64_t i) { return a[i] * b[i]; });
}

void add(MatrixBlock<float> sum, MatrixBlock<const float> x) {
  for (std::int64_t r = 0; r < sum.rows; ++r) {
    float* sum_row = sum.row(r);
    const float* x_row = x.row(r);
#pragma omp simd
    for (std::int64_t c = 0; c < sum.cols; ++c) sum_row[c] += x_row[c];
  }
}

// One row of a block. In: scores = Q K^T and dscores = dcontext V^T. Out: dropped(P) and
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
    const float p = vector_exp(scores[i] * score_scale - query.log_sum_exp);
    dscores[i] = p * (dscores[i] * factors[i] - query.dot_context) * score_scale;
    scores[i] = p * factors[i];
  }
  std::fill(scores + row.num_visible, scores + row.num_keys, 0.0F);
  std::fill(dscores + row.num_visible, dscores + row.num_keys, 0.0F);
}

// What a thread works in.
struct Workspace {
  Workspace(std::int64_t head_size, int num_sums)
      : scores(kQueryBlock * kKeyBlock),
        dscores(kQueryBlock * kKeyBlock),
        keys(kKeyBlock * head_size),
        values(kKeyBlock * head_size),
        key_rows(kKeyBlock * padded_head_size(head_size)),
        query_rows(kQueryBlock * padded_head_size(head_size)),
        dcontext_rows(kQueryBlock * padded_head_size(head_size)) {
    for (int i = 0; i < 2 * num_sums; ++i) key_sums.emplace_back(kKeyBlock * head_size);
  }

  AlignedBuffer scores;
  AlignedBuffer dscores;
  AlignedBuffer keys;      // packed for KeyProduct
  AlignedBuffer values;    // packed for KeyProduct
  AlignedBuffer key_rows;  // packed for HeadProduct, as those below
  AlignedBuffer query_rows;
  AlignedBuffer dcontext_rows;
  std::vector<AlignedBuffer> key_sums;  // for a block of keys: dK and dV, of each sum in turn
};

// out[k] += sum over q of scores[q, k] * heads[q]: from the first query on that sees a strip of
// keys.
void multiply_by_queries(MatrixBlock<float> out, MatrixBlock<const float> scores,
                         const float* packed_heads, const ScorePlace& place) {
  for (std::int64_t k = 0; k < out.rows; k += kStripRows) {
    const std::int64_t begin =
        std::clamp(place.key + k - place.first, std::int64_t{0}, scores.rows);
    HeadProduct::multiply({.data = out.data, .stride = out.stride, .cols = out.cols},
                          {.a = scores.by_columns(),
                           .b = packed_heads,
                           .panel_inner = scores.rows,
                           .update = Update::accumulate},
                          k, std::min(k + kStripRows, out.rows), begin, scores.rows);
  }
}

// One block of scores and what it adds to every gradient.
struct ScoreBlock {
  std::int64_t sample;
  std::int64_t head;
  ScorePlace place;
  std::int64_t num_keys;     // of the key block, packed in the workspace
  MatrixBlock<float> dkeys;  // the sums that the block's queries are added to
  MatrixBlock<float> dvalues;
};

void differentiate(const AttentionBackward& op, const ScoreBlock& block,
                   const Workspace& workspace) {
  const auto& [sample, head, place, num_packed_keys, dkeys, dvalues] = block;
  const auto [first, key] = place;
  const std::int64_t length = op.qkv.dim(1);
  const PackedHeads heads(op.heads, length);
  const auto* qkv = op.qkv.data<float>();
  auto* dqkv = op.dqkv.data<float>();
  const float scale = heads.score_scale();
  const std::int64_t num_queries = std::min(kQueryBlock, length - first);
  const auto queries = heads.query(qkv, sample, head).rows(first, num_queries);
  const auto context =
      heads.context(op.context.data<float>(), sample, head).rows(first, num_queries);
  const auto dcontext =
      heads.context(op.dcontext.data<float>(), sample, head).rows(first, num_queries);
  const ScoreDropout dropout(op.dropout, sample, op.heads.first_query + head);
  const float* log_sum_exp = op.log_sum_exp_BhT.data<float>() + heads.statistics(sample, head);
  const MatrixBlock<float> scores{workspace.scores.data(), num_queries, num_packed_keys, kKeyBlock};
  const MatrixBlock<float> dscores{workspace.dscores.data(), num_queries, num_packed_keys,
                                   kKeyBlock};
  HeadProduct::pack(workspace.query_rows.data(), queries.by_columns(), queries.cols, num_queries);
  HeadProduct::pack(workspace.dcontext_rows.data(), dcontext.by_columns(), dcontext.cols,
                    num_queries);
  alignas(64) float factors[kKeyBlock];
  std::fill_n(factors, kKeyBlock, 1.0F);

  multiply_by_keys(scores, queries, workspace.keys.data(), place);
  multiply_by_keys(dscores, dcontext, workspace.values.data(), place);
  for (std::int64_t r = 0; r < num_queries; ++r) {
    const std::int64_t num_visible = place.num_visible(r, num_packed_keys);
    if (dropout.active()) dropout.fill(factors, first + r, key, num_visible);
    differentiate({scores.row(r), dscores.row(r), num_visible, num_packed_keys},
                  {log_sum_exp[first + r], dot(dcontext.row(r), context.row(r), context.cols)},
                  factors, scale);
  }
  multiply_by_queries(dvalues, scores, workspace.dcontext_rows.data(), place);
  multiply_by_queries(dkeys, dscores, workspace.query_rows.data(), place);
  multiply_by_heads(heads.query(dqkv, sample, head).rows(first, num_queries), dscores,
                    workspace.key_rows.data(), place, key > 0 ? Update::accumulate : Update::write);
}

// Where the sums of dK and dV of one head and sample lie, a stack: the first in the result, the
// others in memory of the thread, for one block of keys at a time.
class KeySums {
 public:
  KeySums(const AttentionBackward& op, std::int64_t sample, std::int64_t kv_head,
          const Workspace& workspace)
      : op_(op),
        heads_(op.heads, op.qkv.dim(1)),
        sample_(sample),
        kv_head_(kv_head),
        workspace_(workspace) {}

  struct Sums {
    MatrixBlock<float> dkeys;
    MatrixBlock<float> dvalues;
  };
  Sums at(int place, std::int64_t key, std::int64_t num_keys) const {
    const std::int64_t head_size = op_.heads.head_size;
    if (op_.dkv_sums.count() == 0 && place == 0) {
      auto* dqkv = op_.dqkv.data<float>();
      return {heads_.key(dqkv, sample_, kv_head_).rows(key, num_keys),
              heads_.value(dqkv, sample_, kv_head_).rows(key, num_keys)};
    }
    if (op_.dkv_sums.count() > 0 && place < num_sums()) {
      const std::int64_t half = op_.qkv.rows() * head_size;
      float* sum = op_.dkv_sums.data<float>() + 2 * half * (first_sum() + place) +
                   (sample_ * op_.qkv.dim(1) + key) * head_size;
      return {{sum, num_keys, head_size, head_size}, {sum + half, num_keys, head_size, head_size}};
    }
    const std::size_t buffer = 2 * static_cast<std::size_t>(place - 1);
    return {{workspace_.key_sums[buffer].data(), num_keys, head_size, head_size},
            {workspace_.key_sums[buffer + 1].data(), num_keys, head_size, head_size}};
  }

 private:
  int num_sums() const { return op_.order->num_sums[static_cast<std::size_t>(kv_head_)]; }
  int first_sum() const {
    const auto begin = op_.order->num_sums.begin();
    return std::accumulate(begin, begin + kv_head_, 0);
  }

  const AttentionBackward& op_;
  PackedHeads heads_;
  std::int64_t sample_;
  std::int64_t kv_head_;
  const Workspace& workspace_;
};

// All gradients that flow through one key and value head of one sample. Blocks of keys, then groups
// of heads, then heads, then blocks of queries, each ascending: the order of every sum.
void differentiate_head(const AttentionBackward& op, std::int64_t sample, std::int64_t kv_head,
                        const Workspace& workspace) {
  const std::int64_t length = op.qkv.dim(1);
  const PackedHeads heads(op.heads, length);
  const KeySums all_sums(op, sample, kv_head, workspace);
  const auto* qkv = op.qkv.data<float>();
  const std::vector<HeadGroup> all_heads = {{heads.first_head_of(kv_head + 1), 0}};
  const std::vector<HeadGroup>& groups =
      op.order == nullptr ? all_heads : op.order->groups[static_cast<std::size_t>(kv_head)];
  for (std::int64_t key = 0; key < length; key += kKeyBlock) {
    const std::int64_t num_keys = std::min(kKeyBlock, length - key);
    const auto keys = heads.key(qkv, sample, kv_head).rows(key, num_keys);
    const auto values = heads.value(qkv, sample, kv_head).rows(key, num_keys);
    KeyProduct::pack(workspace.keys.data(), keys.by_rows(), num_keys, keys.cols);
    KeyProduct::pack(workspace.values.data(), values.by_rows(), num_keys, values.cols);
    HeadProduct::pack(workspace.key_rows.data(), keys.by_columns(), keys.cols, num_keys);
    int place = 0;
    std::int64_t head = heads.first_head_of(kv_head);
    for (const HeadGroup& group : groups) {
      const auto [dkeys, dvalues] = all_sums.at(place, key, num_keys);
      fill_with_zeros(dkeys);
      fill_with_zeros(dvalues);
      for (; head < group.end_head; ++head) {
        for (std::int64_t first = key; first < length; first += kQueryBlock) {
          differentiate(op, {sample, head, {first, key}, num_keys, dkeys, dvalues}, workspace);
        }
      }
      for (int merge = 0; merge < group.num_merges; ++merge, --place) {
        const auto [dkeys_right, dvalues_right] = all_sums.at(place, key, num_keys);
        const auto [dkeys_left, dvalues_left] = all_sums.at(place - 1, key, num_keys);
        add(dkeys_left, dkeys_right);
        add(dvalues_left, dvalues_right);
      }
      ++place;
    }
  }
}

}  // namespace

void CpuKernels::run(const AttentionBackward& op) const {
  const std::int64_t num_samples = op.qkv.dim(0);
#pragma omp parallel
  {
    const Workspace workspace(op.heads.head_size,
                              op.order == nullptr ? 0 : std::max(op.order->depth - 1, 0));
    // A key and value head is the smallest piece whose sums need no other thread.
#pragma omp for collapse(2) schedule(dynamic)
    for (std::int64_t sample = 0; sample < num_samples; ++sample) {
      for (std::int64_t kv_head = 0; kv_head < op.heads.num_kv_heads; ++kv_head) {
        differentiate_head(op, sample, kv_head, workspace);
      }
    }
  }
}

void CpuKernels::run(const CopyColumns& op) const {
  const std::int64_t cols = op.x.cols();
  const std::int64_t stride = op.out.cols();
  const float* x = op.x.data<float>();
  float* out = op.out.data<float>() + op.first;
  for_each_row(op.x.rows(), cols,
               [=](std::int64_t row) { std::copy_n(x + row * cols, cols, out + row * stride); });
}

}  // namespace redspine
