// The innermost parts of a product: packing a panel of an operand, and a tile of the output in
// registers. Vectors are as wide as the machine's. Internal to tensor/cpu; pure but for outputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tensor/cpu/gemm.h"
#include "tensor/cpu/vector.h"
#include "tensor/transpose_square.h"

namespace redspine {

/// A tile of the output: as many accumulators as registers allow, beside one row of B and one
/// broadcast element of A (24 + 3 + 1 of 32 registers of 512 bits, 12 + 3 + 1 of 16 of 256).
inline constexpr int kTileVectors = 3;
inline constexpr int kTileRows = kVectorFloats >= 16 ? 8 : 4;
inline constexpr int kTileCols = kTileVectors * kVectorFloats;

/// A panel of an operand whose inner stride is 1: to[k * width + i] = element (i, k).
template <int width>
void pack_turned(float* to, const GemmOperand& from, std::int64_t num_inner) {
  constexpr int kSquare = width % 8 == 0 ? 8 : 4;
  const std::int64_t whole_inner = num_inner / kSquare * kSquare;
  for (std::int64_t k = 0; k < whole_inner; k += kSquare) {
    for (std::int64_t i = 0; i < width; i += kSquare) {
      transpose_square<kSquare>(to + k * width + i, width, from.data + i * from.stride + k,
                                from.stride);
    }
  }
  for (std::int64_t i = 0; i < width; ++i) {
    for (std::int64_t k = whole_inner; k < num_inner; ++k) {
      to[k * width + i] = from.data[i * from.stride + k];
    }
  }
}

/// The last panel of an operand: `count` < width, and zeros beyond.
template <int width>
void pack_part(float* to, const GemmOperand& from, std::int64_t count, std::int64_t num_inner) {
  std::fill_n(to, num_inner * width, 0.0F);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t k = 0; k < num_inner; ++k) {
      to[k * width + i] = from.data[i * from.stride + k * from.inner_stride];
    }
  }
}

/// The sum over k of a[k][row] * b[k][col] of packed panels, in ascending k, in registers.
struct TileSum {
  Vector sums[kTileRows][kTileVectors];

  [[gnu::always_inline]] TileSum(const float* a, const float* b, std::int64_t num_inner) {
    for (auto& row : sums) {
      for (Vector& sum : row) sum = Vector{};
    }
    for (std::int64_t k = 0; k < num_inner; ++k) {
      Vector b_row[kTileVectors];
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < kTileVectors; ++v) {
        b_row[v] = load(b + k * kTileCols + v * kVectorFloats);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        const float element = a[k * kTileRows + r];
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) sums[r][v] = fused(element, b_row[v], sums[r][v]);
      }
    }
  }

  /// sums += a row, for all rows of a tile.
  [[gnu::always_inline]] void add_row(const float* row) {
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < kTileVectors; ++v) sums[r][v] += load(row + v * kVectorFloats);
    }
  }

  /// sums += what lies there, of a whole tile.
  [[gnu::always_inline]] void add(const float* from, std::int64_t stride) {
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < kTileVectors; ++v) {
        sums[r][v] += load(from + r * stride + v * kVectorFloats);
      }
    }
  }

  [[gnu::always_inline]] void store(float* out, std::int64_t stride) const {
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < kTileVectors; ++v) {
        redspine::store(out + r * stride + v * kVectorFloats, sums[r][v]);
      }
    }
  }
};

}  // namespace redspine
