// The innermost parts of a product: packing a panel of an operand, and a tile of the output in
// registers. Vectors are as wide as the machine's. Internal to tensor/cpu; pure but for outputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <experimental/simd>

#include "tensor/cpu/gemm.h"

namespace redspine {

inline constexpr int kVectorFloats =
    static_cast<int>(std::experimental::native_simd<float>::size());

/// A tile of the output: as many accumulators as registers allow, beside one row of B and one
/// broadcast element of A (24 + 3 + 1 of 32 registers of 512 bits, 12 + 3 + 1 of 16 of 256).
inline constexpr int kTileVectors = 3;
inline constexpr int kTileRows = kVectorFloats >= 16 ? 8 : 4;
inline constexpr int kTileCols = kTileVectors * kVectorFloats;

template <int size>
struct VectorOf {
  typedef float Type __attribute__((vector_size(size * sizeof(float))));         // NOLINT
  typedef std::int32_t Mask __attribute__((vector_size(size * sizeof(float))));  // NOLINT
};
using Vector = VectorOf<kVectorFloats>::Type;

/// From and to any address.
template <class V = Vector>
[[gnu::always_inline]] inline V load(const float* from) {
  V vector;
  std::memcpy(&vector, from, sizeof(V));
  return vector;
}
template <class V>
[[gnu::always_inline]] inline void store(float* to, V vector) {
  std::memcpy(to, &vector, sizeof(V));
}

/// to[c][r] = from[r][c] for a square of `size` x `size`: log2(size) rounds, each exchanging the
/// elements whose row and column differ in one bit.
template <int size>
[[gnu::always_inline]] inline void transpose_square(float* to, std::int64_t to_stride,
                                                    const float* from, std::int64_t from_stride) {
  using V = typename VectorOf<size>::Type;
  using Mask = typename VectorOf<size>::Mask;
  V rows[size];
  for (int r = 0; r < size; ++r) rows[r] = load<V>(from + r * from_stride);
#pragma GCC unroll 8
  for (int bit = 1; bit < size; bit *= 2) {
    Mask low{};
    Mask high{};
    for (int lane = 0; lane < size; ++lane) {
      low[lane] = (lane & bit) == 0 ? lane : size + (lane ^ bit);
      high[lane] = (lane & bit) == 0 ? (lane ^ bit) : size + lane;
    }
#pragma GCC unroll 8
    for (int r = 0; r < size; ++r) {
      if ((r & bit) != 0) continue;
      const V a = rows[r];
      const V b = rows[r | bit];
      rows[r] = __builtin_shuffle(a, b, low);
      rows[r | bit] = __builtin_shuffle(a, b, high);
    }
  }
  for (int c = 0; c < size; ++c) store(to + c * to_stride, rows[c]);
}

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
      for (int v = 0; v < kTileVectors; ++v) {
        b_row[v] = load(b + k * kTileCols + v * kVectorFloats);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        const float element = a[k * kTileRows + r];
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) sums[r][v] += element * b_row[v];
      }
    }
  }

  /// out = or += the sums (+ bias), for a whole tile.
  [[gnu::always_inline]] void store(float* out, std::int64_t stride, Update update,
                                    const float* bias) const {
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        float* to = out + r * stride + v * kVectorFloats;
        Vector value = sums[r][v];
        if (bias != nullptr) value += load(bias + v * kVectorFloats);
        redspine::store(to, update == Update::accumulate ? load(to) + value : value);
      }
    }
  }

  /// The same for the first rows and columns of a tile.
  void store_part(float* out, std::int64_t stride, const GemmTile& tile, Update update,
                  const float* bias) const {
    alignas(64) float all[kTileRows * kTileCols];
    store(all, kTileCols, Update::write, nullptr);
    for (std::int64_t r = 0; r < tile.num_rows; ++r) {
      for (std::int64_t c = 0; c < tile.num_cols; ++c) {
        const float value = all[r * kTileCols + c] + (bias == nullptr ? 0.0F : bias[c]);
        float& to = out[r * stride + c];
        to = update == Update::accumulate ? to + value : value;
      }
    }
  }
};

}  // namespace redspine
