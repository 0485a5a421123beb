// Products of blocks that are already in the cache, in the calling thread: one side is read where
// it lies, the other from packed panels. Internal to tensor/cpu; pure but for outputs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/cpu/gemm_tile.h"

namespace redspine {

/// Rows of length `cols`, `stride` apart.
struct GemmOutput {
  float* data;
  std::int64_t stride;
  std::int64_t cols;
};

/// The shape of the tiles that a small product is made of, in registers.
template <int rows, int vectors>
struct SmallGemm {
  static constexpr int kRows = rows;
  static constexpr int kCols = vectors * kVectorFloats;

  static std::int64_t num_panels(std::int64_t cols) { return (cols + kCols - 1) / kCols; }

  /// Panels of B, element (n, k): to[panel][k][kCols], zeros beyond `count`. `to` has room for
  /// num_panels(count) * kCols * num_inner floats.
  static void pack(float* to, const GemmOperand& from, std::int64_t count, std::int64_t num_inner) {
    for (std::int64_t i = 0; i < count; i += kCols) {
      const GemmOperand panel{from.data + i * from.stride, from.stride, from.inner_stride};
      float* to_panel = to + i * num_inner;
      if (count - i < kCols) {
        pack_part<kCols>(to_panel, panel, count - i, num_inner);
      } else if (from.stride == 1) {
        for (std::int64_t k = 0; k < num_inner; ++k) {
          std::memcpy(to_panel + k * kCols, panel.data + k * panel.inner_stride,
                      kCols * sizeof(float));
        }
      } else {
        pack_turned<kCols>(to_panel, panel, num_inner);
      }
    }
  }

  struct Operands {
    GemmOperand a;             // element (m, k)
    const float* b;            // packed
    std::int64_t panel_inner;  // inner length that B was packed with
    Update update;
  };

  /// Rows [begin, end) of out = or += A B over the inner range [inner_begin, inner_end). Where the
  /// last panel is wider than `out`, only its first columns are stored.
  static void multiply(const GemmOutput& out, const Operands& operands, std::int64_t begin,
                       std::int64_t end, std::int64_t inner_begin, std::int64_t inner_end) {
    for (std::int64_t col = 0; col < out.cols; col += kCols) {
      const float* b = operands.b + col * operands.panel_inner + inner_begin * kCols;
      std::int64_t row = begin;
      for (; row + rows <= end; row += rows) {
        multiply_tile<rows>(out, operands, row, col, b, inner_begin, inner_end);
      }
      for (; row < end; ++row) {
        multiply_tile<1>(out, operands, row, col, b, inner_begin, inner_end);
      }
    }
  }

 private:
  template <int tile_rows>
  [[gnu::always_inline]] static void multiply_tile(const GemmOutput& out, const Operands& operands,
                                                   std::int64_t row, std::int64_t col,
                                                   const float* b, std::int64_t inner_begin,
                                                   std::int64_t inner_end) {
    const std::int64_t stride = operands.a.stride;
    const std::int64_t inner_stride = operands.a.inner_stride;
    const float* a = operands.a.data + row * stride + inner_begin * inner_stride;
    Vector sums[tile_rows][vectors] = {};
    for (std::int64_t k = inner_begin; k < inner_end; ++k) {
      Vector b_row[vectors];
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < vectors; ++v) b_row[v] = load(b + v * kVectorFloats);
#pragma GCC unroll 16
      for (int r = 0; r < tile_rows; ++r) {
        const float element = a[r * stride];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[r][v] = fused(element, b_row[v], sums[r][v]);
      }
      a += inner_stride;
      b += kCols;
    }
    float* to = out.data + row * out.stride + col;
    if (out.cols - col >= kCols) {
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 4
        for (std::int64_t v = 0; v < vectors; ++v) {
          float* at = to + r * out.stride + v * kVectorFloats;
          store(at, operands.update == Update::accumulate ? load(at) + sums[r][v] : sums[r][v]);
        }
      }
      return;
    }
    for (int r = 0; r < tile_rows; ++r) {
      float all[kCols];
      for (int v = 0; v < vectors; ++v) store(all + v * kVectorFloats, sums[r][v]);
      for (std::int64_t c = 0; c < out.cols - col; ++c) {
        float& at = to[r * out.stride + c];
        at = operands.update == Update::accumulate ? at + all[c] : all[c];
      }
    }
  }
};

}  // namespace redspine
