// The ragged shapes that every row-wise kernel is tested on: single rows and columns, no multiple
// of a vector or a block, and enough elements for the threads to share.
#pragma once

#include <array>
#include <cstdint>

namespace redspine::testing {

struct MatrixShape {
  std::int64_t rows;
  std::int64_t cols;
};

inline constexpr std::array<MatrixShape, 9> kRaggedShapes{
    {{1, 1}, {1, 7}, {2, 1}, {257, 1}, {3, 257}, {33, 65}, {64, 96}, {300, 129}, {31, 1031}}};

}  // namespace redspine::testing
