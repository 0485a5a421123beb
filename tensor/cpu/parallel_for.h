// How kernels cut their work for OpenMP: into rows, or into blocks of a fixed size. No bound and no
// order of a sum depends on the number of threads, so no result does. Small work stays in the
// calling thread, where it is done before a team would have started.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "tensor/kernels.h"
#include "tensor/view.h"

namespace redspine {

/// Elements that one piece of work should at least have.
inline constexpr std::int64_t kBlockElements = 16384;

/// body(begin, end) for blocks of [0, count).
template <class Body>
void for_each_block(std::int64_t count, Body body) {
  const std::int64_t num_blocks = (count + kBlockElements - 1) / kBlockElements;
#pragma omp parallel for schedule(static) if (num_blocks > 1)
  for (std::int64_t block = 0; block < num_blocks; ++block) {
    const std::int64_t begin = block * kBlockElements;
    body(begin, std::min(begin + kBlockElements, count));
  }
}

/// body(row) for rows of `cols` elements that do not depend on each other.
template <class Body>
void for_each_row(std::int64_t rows, std::int64_t cols, Body body) {
#pragma omp parallel for schedule(static) if (rows * cols > kBlockElements)
  for (std::int64_t row = 0; row < rows; ++row) body(row);
}

/// out[c] += the sum over rows of what body(begin, end, partial) adds to partial[c] for the rows
/// [begin, end): rows ascend within blocks, and then the blocks ascend. A block has kSummedRows, or
/// what is left of a sample's `sample_rows`. `body` may also do anything else that concerns its
/// rows alone.
template <class Body>
void add_column_sums(float* out, std::int64_t rows, std::int64_t cols, std::int64_t sample_rows,
                     Body body) {
  constexpr std::int64_t kColumns = 256;
  if (rows == 0) return;
  const std::int64_t blocks_per_sample = (sample_rows + kSummedRows - 1) / kSummedRows;
  const std::int64_t num_blocks = rows / sample_rows * blocks_per_sample;
  const auto partials =
      std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(num_blocks * cols));
#pragma omp parallel if (rows * cols > kBlockElements)
  {
#pragma omp for schedule(static)
    for (std::int64_t block = 0; block < num_blocks; ++block) {
      float* partial = partials.get() + block * cols;
      std::fill_n(partial, cols, 0.0F);
      const std::int64_t sample = block / blocks_per_sample * sample_rows;
      const std::int64_t begin = sample + block % blocks_per_sample * kSummedRows;
      body(begin, std::min(begin + kSummedRows, sample + sample_rows), partial);
    }
#pragma omp for schedule(static)
    for (std::int64_t begin = 0; begin < cols; begin += kColumns) {
      const std::int64_t end = std::min(begin + kColumns, cols);
      for (std::int64_t block = 0; block < num_blocks; ++block) {
        const float* partial = partials.get() + block * cols;
#pragma omp simd
        for (std::int64_t c = begin; c < end; ++c) out[c] += partial[c];
      }
    }
  }
}

/// The rows of a sample of [B, T, columns], or all rows of a matrix.
inline std::int64_t sample_rows_of(ConstTensorView x) {
  return x.shape().rank() == 3 ? x.dim(1) : x.rows();
}

/// The sum of body(begin, end) over blocks of [0, count), in f64 and in the order of the blocks.
template <class Body>
double sum_over_blocks(std::int64_t count, Body body) {
  const std::int64_t num_blocks = (count + kBlockElements - 1) / kBlockElements;
  const auto partials =
      std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(num_blocks));
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    partials[static_cast<std::size_t>(begin / kBlockElements)] = body(begin, end);
  });
  double sum = 0;
  for (std::int64_t block = 0; block < num_blocks; ++block) {
    sum += partials[static_cast<std::size_t>(block)];
  }
  return sum;
}

}  // namespace redspine
