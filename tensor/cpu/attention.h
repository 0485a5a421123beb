// What the two attention kernels share: where a head lies in packed rows, and the blocks that the
// T x T scores are cut into. Internal to tensor/cpu; local; owns nothing.
#pragma once

#include <cblas-openblas.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/kernels.h"

namespace redspine {

/// Rows and columns of a block of scores: a few of them fit into the level-2 cache of a core, and
/// their products run near the speed of large ones.
inline constexpr std::int64_t kQueryBlock = 64;
inline constexpr std::int64_t kKeyBlock = 128;
static_assert(kKeyBlock % kQueryBlock == 0,
              "a query block at or behind a key block has no query that sees none of its keys");

/// A rectangle inside a row-major matrix; `Float` is `float` or `const float`.
template <class Float>
struct Block {
  Float* data;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t stride;

  Float* row(std::int64_t r) const { return data + r * stride; }
  operator Block<const float>() const { return {data, rows, cols, stride}; }  // NOLINT: decays
};

/// c = alpha * A B + beta * c, where A is `a` or its transpose and B is `b` or its.
template <Transpose transpose_a, Transpose transpose_b>
void multiply(Block<float> c, Block<const float> a, Block<const float> b, float alpha, float beta) {
  cblas_sgemm(CblasRowMajor, transpose_a == Transpose::yes ? CblasTrans : CblasNoTrans,
              transpose_b == Transpose::yes ? CblasTrans : CblasNoTrans, static_cast<int>(c.rows),
              static_cast<int>(c.cols),
              static_cast<int>(transpose_a == Transpose::yes ? a.rows : a.cols), alpha, a.data,
              static_cast<int>(a.stride), b.data, static_cast<int>(b.stride), beta, c.data,
              static_cast<int>(c.stride));
}

/// The rows of one head of one sample.
template <class Float>
struct HeadRows {
  Float* data;
  std::int64_t head_size;
  std::int64_t stride;

  Block<Float> rows(std::int64_t first, std::int64_t count) const {
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

  /// The key and value head that a query head uses.
  std::int64_t kv_head_of(std::int64_t head) const {
    return (layout_.first_query + head) / layout_.queries_per_kv - first_kv_head();
  }
  /// The query heads that use a key and value head are those from first_head_of(kv_head) up to
  /// first_head_of(kv_head + 1).
  std::int64_t first_head_of(std::int64_t kv_head) const {
    const std::int64_t global = (first_kv_head() + kv_head) * layout_.queries_per_kv;
    return std::clamp(global - layout_.first_query, std::int64_t{0}, layout_.num_heads);
  }
  float score_scale() const { return 1.0F / std::sqrt(static_cast<float>(layout_.head_size)); }

 private:
  std::int64_t first_kv_head() const { return layout_.first_query / layout_.queries_per_kv; }

  template <class Float>
  HeadRows<Float> packed(Float* qkv, std::int64_t sample, std::int64_t place) const {
    const std::int64_t stride = (layout_.num_heads + 2 * layout_.num_kv_heads) * layout_.head_size;
    return {qkv + sample * length_ * stride + place * layout_.head_size, layout_.head_size, stride};
  }

  HeadLayout layout_;
  std::int64_t length_;
};

}  // namespace redspine
