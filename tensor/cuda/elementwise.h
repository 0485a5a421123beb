// Kernels whose elements do not depend on each other: over a flat array, or over the rows of a
// matrix. An operation is a struct with apply<width>(...), run for `width` elements at a time.
// Device code and its launch; local.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.h"
#include "tensor/cuda/vector.h"

namespace redspine::cuda {

inline constexpr int kElementwiseThreads = 256;

/// op.apply<width>(i) for elements [i, i + width), and apply<1> for what is left.
template <int width, class Op>
__global__ void __launch_bounds__(kElementwiseThreads) flat_kernel(Op op, std::int64_t count) {
  const std::int64_t begin = (std::int64_t{blockIdx.x} * kElementwiseThreads + threadIdx.x) * width;
  if (begin + width <= count) {
    op.template apply<width>(begin);
  } else {
    for (std::int64_t i = begin; i < count; ++i) op.template apply<1>(i);
  }
}

/// op.apply<width>(row, c) for columns [c, c + width), where width divides cols. One block per
/// row.
template <int width, class Op>
__global__ void __launch_bounds__(kElementwiseThreads) rows_kernel(Op op, std::int64_t cols) {
  for (std::int64_t c = std::int64_t{threadIdx.x} * width; c < cols;
       c += std::int64_t{blockDim.x} * width) {
    op.template apply<width>(std::int64_t{blockIdx.x}, c);
  }
}

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Threads that share `num_pieces` pieces of work: whole warps, at most `max_threads`.
inline unsigned block_size_for(std::int64_t num_pieces, int max_threads = kElementwiseThreads) {
  const std::int64_t rounded = divide_up(num_pieces, kWarpSize) * kWarpSize;
  return static_cast<unsigned>(std::clamp<std::int64_t>(rounded, kWarpSize, max_threads));
}

/// Over `count` elements of T.
template <class T, class Op>
void for_each_element(cudaStream_t stream, const Op& op, std::int64_t count, Access access) {
  if (count == 0) return;
  with_width<T>(access, [&]<int width>() {
    const std::int64_t num_blocks = divide_up(count, std::int64_t{kElementwiseThreads} * width);
    launch(stream, {static_cast<unsigned>(num_blocks), kElementwiseThreads}, flat_kernel<width, Op>,
           op, count);
  });
}

struct MatrixSize {
  std::int64_t rows;
  std::int64_t cols;
};

/// Over a matrix of T.
template <class T, class Op>
void for_each_row(cudaStream_t stream, const Op& op, MatrixSize size, Access access) {
  if (size.rows == 0 || size.cols == 0) return;
  with_width<T>(access, [&]<int width>() {
    launch(stream, {static_cast<unsigned>(size.rows), block_size_for(size.cols / width)},
           rows_kernel<width, Op>, op, size.cols);
  });
}

}  // namespace redspine::cuda
