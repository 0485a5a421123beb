#include <algorithm>
#include <span>
#include <vector>

#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/parts.h"
#include "tensor/cuda/reduce.h"

namespace redspine::cuda {
namespace {

constexpr int kThreads = 512;
// Fixed, so that a sum does not depend on the size of the GPU.
constexpr std::int64_t kElementsPerBlock = std::int64_t{1} << 15;

struct SquaresPart {
  const float* x;
  std::int64_t count;
};

template <int width>
__global__ void __launch_bounds__(kThreads)
    squares_kernel(double* partials, const __grid_constant__ PartTable<SquaresPart> table) {
  auto& shared = *shared_memory<ReductionShared<double>>();
  const int p = table.part_of(blockIdx.x);
  const float* x = table.parts[p].x;
  const std::int64_t begin = (blockIdx.x - table.first_blocks[p]) * kElementsPerBlock;
  const std::int64_t end = min(begin + kElementsPerBlock, table.parts[p].count);
  double sum = 0.0;
  for (std::int64_t i = begin + std::int64_t{threadIdx.x} * width; i < end; i += kThreads * width) {
    if (i + width <= end) {
      const Floats<width> v = load<width>(x + i);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        sum += static_cast<double>(v.values[j]) * static_cast<double>(v.values[j]);
      }
    } else {
      for (std::int64_t last = i; last < end; ++last) {
        sum += static_cast<double>(x[last]) * static_cast<double>(x[last]);
      }
    }
  }
  sum = reduce_block(sum, shared.per_warp, Plus{});
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    add_kernel(double* total, const double* partials, std::int64_t count) {
  auto& shared = *shared_memory<ReductionShared<double>>();
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += partials[i];
  sum = reduce_block(sum, shared.per_warp, Plus{});
  if (threadIdx.x == 0) *total += sum;
}

}  // namespace

void CudaKernels::run(const SumOfSquares& op) const {
  std::vector<SquaresPart> parts;
  std::int64_t num_partials = 0;
  Access access = Access::full;
  for (const ConstTensorView& part : op.parts) {
    if (part.count() == 0) continue;
    parts.push_back({.x = elements<float>(part), .count = part.count()});
    num_partials += divide_up(part.count(), kElementsPerBlock);
    if (access_to(part) == Access::single) access = Access::single;
  }
  if (parts.empty()) return;
  auto* partials = scratch_.elements<double>(num_partials);
  double* next = partials;
  with_width<float>(access, [&]<int width>() {
    for_each_table(std::span<const SquaresPart>(parts), kElementsPerBlock,
                   [&](const PartTable<SquaresPart>& table, unsigned num_blocks) {
                     launch(stream_, {num_blocks, kThreads, sizeof(ReductionShared<double>)},
                            squares_kernel<width>, next, table);
                     next += num_blocks;
                   });
  });
  launch(stream_, {1, kThreads, sizeof(ReductionShared<double>)}, add_kernel,
         elements<double>(op.sum), partials, num_partials);
}

}  // namespace redspine::cuda
