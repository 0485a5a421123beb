// The transposition of a small square of floats in vector registers: what larger transpositions are
// made of. Pure but for the output.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace redspine {

template <int kSize>
struct SquareRows {
  typedef float Row __attribute__((vector_size(kSize * sizeof(float))));  // NOLINT
  Row rows[kSize];  // an array<Row> would forget that Row is a vector

  // Of each 2 x 2 squares of kStep x kStep elements, swaps the two that are off the diagonal.
  template <int kStep, int... kLane>
  [[gnu::always_inline]] inline void swap_off_diagonal(
      std::integer_sequence<int, kLane...> /*lanes*/) {
    for (int i = 0; i < kSize; ++i) {
      if ((i & kStep) != 0) continue;
      const Row upper = rows[i];
      const Row lower = rows[i + kStep];
      rows[i] = __builtin_shufflevector(upper, lower,
                                        ((kLane & kStep) != 0 ? kSize + kLane - kStep : kLane)...);
      rows[i + kStep] = __builtin_shufflevector(
          upper, lower, ((kLane & kStep) != 0 ? kSize + kLane : kLane + kStep)...);
    }
  }
};

/// to[c][r] = from[r][c] for a square of kSize x kSize, 4 or 8, at any addresses; the strides are
/// between rows, in floats.
template <int kSize>
[[gnu::always_inline]] inline void transpose_square(float* to, std::int64_t to_stride,
                                                    const float* from, std::int64_t from_stride) {
  static_assert(kSize == 4 || kSize == 8);
  constexpr auto kLanes = std::make_integer_sequence<int, kSize>();
  SquareRows<kSize> square;
  for (auto& row : square.rows) {
    std::memcpy(&row, from, sizeof(row));
    from += from_stride;
  }
  if constexpr (kSize == 8) square.template swap_off_diagonal<4>(kLanes);
  square.template swap_off_diagonal<2>(kLanes);
  square.template swap_off_diagonal<1>(kLanes);
  for (const auto& row : square.rows) {
    std::memcpy(to, &row, sizeof(row));
    to += to_stride;
  }
}

}  // namespace redspine
