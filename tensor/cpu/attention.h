// What the two attention kernels share: where a head lies in packed rows, and the blocks that the
// T x T scores are cut into. Internal to tensor/cpu; local; owns nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/cpu/small_gemm.h"
#include "tensor/kernels.h"

namespace redspine {

/// Rows and columns of a block of scores: a few of them fit into the level-2 cache of a core.
inline constexpr std::int64_t kQueryBlock = 96;
inline constexpr std::int64_t kKeyBlock = 192;
static_assert(kKeyBlock % kQueryBlock == 0,
              "a query block at or behind a key block has no query that sees none of its keys");

/// Products whose columns are keys, and products whose columns are the elements of a head.
using KeyProduct = SmallGemm<kTileRows, kTileVectors>;
using HeadProduct = SmallGemm<4, kVectorFloats >= 16 ? 4 : 2>;
static_assert(kKeyBlock % KeyProduct::kCols == 0);

/// Products for rows of queries are cut into strips, each as long as the keys that it sees.
inline constexpr std::int64_t kStripRows = 8;
static_assert(kStripRows % KeyProduct::kRows == 0 && kStripRows % HeadProduct::kRows == 0);

inline std::int64_t padded_head_size(std::int64_t head_size) {
  return HeadProduct::num_panels(head_size) * HeadProduct::kCols;
}

/// A rectangle inside a row-major matrix; `Float` is `float` or `const float`.
template <class Float>
struct MatrixBlock {
  Float* data;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t stride;

  Float* row(std::int64_t r) const { return data + r * stride; }
  operator MatrixBlock<const float>() const {
    return {data, rows, cols, stride};
  }  // NOLINT: decays

  GemmOperand by_rows() const { return {data, stride, 1}; }
  GemmOperand by_columns() const { return {data, 1, stride}; }
};

/// Where a block of scores lies: query `first` + row, key `key` + column.
struct ScorePlace {
  std::int64_t first;
  std::int64_t key;

  /// How many of the keys the queries up to `row` see.
  std::int64_t num_visible(std::int64_t row, std::int64_t num_keys) const {
    return std::min(num_keys, first + row - key + 1);
  }
};

/// scores[q, k] = rows[q] * keys[k] for the keys that a strip of rows sees; what lies beyond is
/// undefined. `packed_keys` are panels of KeyProduct; the scores' rows have room for whole panels.
inline void multiply_by_keys(MatrixBlock<float> scores, MatrixBlock<const float> rows,
                             const float* packed_keys, const ScorePlace& place) {
  for (std::int64_t r = 0; r < scores.rows; r += kStripRows) {
    const std::int64_t end = std::min(r + kStripRows, scores.rows);
    const std::int64_t visible = place.num_visible(end - 1, scores.cols);
    KeyProduct::multiply(
        {.data = scores.data,
         .stride = scores.stride,
         .cols = KeyProduct::num_panels(visible) * KeyProduct::kCols},
        {.a = rows.by_rows(), .b = packed_keys, .panel_inner = rows.cols, .update = Update::write},
        r, end, 0, rows.cols);
  }
}

/// out[q] = or += sum over k of scores[q, k] * heads[k], where scores are 0 beyond what a query
/// sees. `packed_heads` are panels of HeadProduct, `scores.cols` long.
inline void multiply_by_heads(MatrixBlock<float> out, MatrixBlock<const float> scores,
                              const float* packed_heads, const ScorePlace& place, Update update) {
  for (std::int64_t r = 0; r < out.rows; r += kStripRows) {
    const std::int64_t end = std::min(r + kStripRows, out.rows);
    HeadProduct::multiply(
        {.data = out.data, .stride = out.stride, .cols = out.cols},
        {.a = scores.by_rows(), .b = packed_heads, .panel_inner = scores.cols, .update = update}, r,
        end, 0, place.num_visible(end - 1, scores.cols));
  }
}

/// The rows of one head of one sample.
template <class Float>
struct HeadRows {
  Float* data;
  std::int64_t head_size;
  std::int64_t stride;

  MatrixBlock<Float> rows(std::int64_t first, std::int64_t count) const {
    return {data + first * stride, count, head_size, stride};
  }
};

/// Finds heads in packed rows (see HeadLayout); head numbers are this rank's.
class PackedHeads {
 public:
  PackedHeads(const HeadLayout& layout, std::int64_t length) : layout_(layout), length_(length) {}

  template <class Float>
  HeadRows<Float> query(Float* qkv, std::int64_t sample, std::int64_t head) const {
    return packed(qkv, sample, head);
  }
  template <class Float>
  HeadRows<Float> key(Float* qkv, std::int64_t sample, std::int64_t kv_head) const {
    return packed(qkv, sample, layout_.num_heads + kv_head);
  }
  template <class Float>
  HeadRows<Float> value(Float* qkv, std::int64_t sample, std::int64_t kv_head) const {
    return packed(qkv, sample, layout_.num_heads + layout_.num_kv_heads + kv_head);
  }
  template <class Float>
  HeadRows<Float> context(Float* context, std::int64_t sample, std::int64_t head) const {
    const std::int64_t stride = layout_.num_heads * layout_.head_size;
    return {context + sample * length_ * stride + head * layout_.head_size, layout_.head_size,
            stride};
  }
  /// Offset of a head's log-sum-exp of query 0.
  std::int64_t statistics(std::int64_t sample, std::int64_t head) const {
    return (sample * layout_.num_heads + head) * length_;
  }

  std::int64_t kv_head_of(std::int64_t head) const { return layout_.kv_head_of(head); }
  std::int64_t first_head_of(std::int64_t kv_head) const { return layout_.first_head_of(kv_head); }
  float score_scale() const { return 1.0F / std::sqrt(static_cast<float>(layout_.head_size)); }

 private:
  template <class Float>
  HeadRows<Float> packed(Float* qkv, std::int64_t sample, std::int64_t place) const {
    const std::int64_t stride = (layout_.num_heads + 2 * layout_.num_kv_heads) * layout_.head_size;
    return {qkv + sample * length_ * stride + place * layout_.head_size, layout_.head_size, stride};
  }

  HeadLayout layout_;
  std::int64_t length_;
};

}  // namespace redspine
