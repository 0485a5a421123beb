#include <algorithm>

#include "tensor/cuda/column_sums.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/linear_parts.h"

namespace redspine::cuda {
namespace {

// A block has kLanes threads along the columns and kGroups along what is summed.
constexpr int kLanes = 32;
constexpr int kGroups = 8;

template <int width>
struct GroupSums {
  float values[kGroups][kLanes][width];
};

// The sum of the groups in ascending order, in the threads of group 0.
template <int width>
__device__ Floats<width> add_groups(const Floats<width>& sum) {
  auto& shared = *shared_memory<GroupSums<width>>();
  float(&mine)[width] = shared.values[threadIdx.y][threadIdx.x];
#pragma unroll
  for (int j = 0; j < width; ++j) mine[j] = sum.values[j];
  __syncthreads();
  Floats<width> total{};
  if (threadIdx.y == 0) {
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int j = 0; j < width; ++j) total.values[j] += shared.values[group][threadIdx.x][j];
    }
  }
  return total;
}

struct ColumnRange {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t rows_per_block;
};

template <int width, class T>
__global__ void __launch_bounds__(kLanes* kGroups)
    column_sums_kernel(float* partials, const T* x, ColumnRange range) {
  const std::int64_t c = (std::int64_t{blockIdx.x} * kLanes + threadIdx.x) * width;
  const std::int64_t begin = std::int64_t{blockIdx.y} * range.rows_per_block;
  const std::int64_t end = min(begin + range.rows_per_block, range.rows);
  Floats<width> sum{};
  if (c < range.cols) {
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kGroups) {
      const Floats<width> v = load<width>(x + row * range.cols + c);
#pragma unroll
      for (int j = 0; j < width; ++j) sum.values[j] += v.values[j];
    }
  }
  sum = add_groups(sum);
  if (threadIdx.y == 0 && c < range.cols) {
    store(partials + std::int64_t{blockIdx.y} * range.cols + c, sum);
  }
}

__global__ void __launch_bounds__(kLanes* kGroups)
    add_partial_sums_kernel(float* sums, std::int64_t cols, PartialSums partials) {
  const std::int64_t c = std::int64_t{blockIdx.x} * kLanes + threadIdx.x;
  Floats<1> sum{};
  if (c < cols) {
    for (std::int64_t i = threadIdx.y; i < partials.num_blocks; i += kGroups) {
      sum.values[0] += partials.values[i * partials.stride + c];
    }
  }
  sum = add_groups(sum);
  if (threadIdx.y == 0 && c < cols) sums[c] += sum.values[0];
}

}  // namespace

RowBlocks cut_rows(std::int64_t rows, std::int64_t min_rows_per_block) {
  const std::int64_t rows_per_block = std::max(min_rows_per_block, divide_up(rows, kMaxRowBlocks));
  return {divide_up(rows, rows_per_block), rows_per_block};
}

void add_partial_sums(cudaStream_t stream, float* sums, std::int64_t cols,
                      const PartialSums& partials) {
  if (cols == 0) return;
  launch(
      stream,
      {static_cast<unsigned>(divide_up(cols, kLanes)), dim3(kLanes, kGroups), sizeof(GroupSums<1>)},
      add_partial_sums_kernel, sums, cols, partials);
}

void add_columns(cudaStream_t stream, TensorView sums, ConstTensorView x, Scratch& scratch) {
  const std::int64_t rows = x.rows();
  const std::int64_t cols = x.cols();
  if (rows == 0 || cols == 0) return;
  const RowBlocks blocks = cut_rows(rows, 4 * kGroups);
  auto* partials = scratch.elements<float>(blocks.count * cols);
  with_type(x.dtype(), [&]<class T>() {
    with_width<T>(access_to_rows<T>(cols, x), [&]<int width>() {
      const auto num_column_blocks = static_cast<unsigned>(divide_up(cols, kLanes * width));
      launch(stream,
             {dim3(num_column_blocks, static_cast<unsigned>(blocks.count)), dim3(kLanes, kGroups),
              sizeof(GroupSums<width>)},
             column_sums_kernel<width, T>, partials, elements<T>(x),
             ColumnRange{rows, cols, blocks.rows_per_block});
    });
  });
  add_partial_sums(stream, elements<float>(sums), cols, {partials, blocks.count, cols});
}

}  // namespace redspine::cuda
