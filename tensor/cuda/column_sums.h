// Sums over the rows of a matrix in two steps: blocks of rows leave partial sums in scratch memory,
// which are then added up in the order of the blocks. Device code and its launch; local.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace redspine::cuda {

/// Blocks that the rows are cut into, at most: enough to fill a GPU, few enough that the partial
/// sums weigh little beside the rows.
inline constexpr std::int64_t kMaxRowBlocks = 512;

/// How rows are cut: block i has the rows [i * rows_per_block, (i + 1) * rows_per_block).
struct RowBlocks {
  std::int64_t count;
  std::int64_t rows_per_block;
};

RowBlocks cut_rows(std::int64_t rows, std::int64_t min_rows_per_block);

/// Partial sums of num_blocks blocks of rows, the one of block i and column c at
/// i * stride + c.
struct PartialSums {
  const float* values;
  std::int64_t num_blocks;
  std::int64_t stride;
};

/// sums[c] += the sum over blocks of their partial sums of column c.
void add_partial_sums(cudaStream_t stream, float* sums, std::int64_t cols,
                      const PartialSums& partials);

}  // namespace redspine::cuda
