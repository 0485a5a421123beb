// Normally distributed numbers, each a pure function of (key, element number). On the host, so that
// every backend starts from the same bits.
#pragma once

#include <cstdint>
#include <span>

namespace redspine {

/// A piece of a row-major matrix: [num_rows, num_cols], whose element (r, c) has the number
/// first_element + r * row_stride + c in the whole.
struct MatrixPiece {
  std::int64_t num_rows;
  std::int64_t num_cols;
  std::int64_t first_element;
  std::int64_t row_stride;
};

/// out[r, c] = standard_deviation * z(key, number of (r, c)), written. z is the normal quantile
/// (Wichura, algorithm AS 241, Applied Statistics 37, 1988) of a uniform 32-bit number of Philox.
void fill_normal(std::span<float> out, const MatrixPiece& piece, std::uint64_t key,
                 float standard_deviation);

}  // namespace redspine
