#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/reduce.h"

namespace redspine::cuda {
namespace {

constexpr int kThreads = 512;
// Fixed, so that a sum does not depend on the size of the GPU; enough to fill the largest.
constexpr std::int64_t kMaxBlocks = 1024;

struct SumShared {
  double per_warp[kMaxWarps];
};

template <int width>
__global__ void __launch_bounds__(kThreads)
    squares_kernel(double* partials, const float* x, std::int64_t count) {
  auto& shared = *shared_memory<SumShared>();
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads * width;
  double sum = 0.0;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * width; i < count;
       i += stride) {
    if (i + width <= count) {
      const Floats<width> v = load<width>(x + i);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        sum += static_cast<double>(v.values[j]) * static_cast<double>(v.values[j]);
      }
    } else {
      for (std::int64_t last = i; last < count; ++last) {
        sum += static_cast<double>(x[last]) * static_cast<double>(x[last]);
      }
    }
  }
  sum = reduce_block(sum, shared.per_warp, Plus{});
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    add_kernel(double* total, const double* partials, std::int64_t count) {
  auto& shared = *shared_memory<SumShared>();
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += partials[i];
  sum = reduce_block(sum, shared.per_warp, Plus{});
  if (threadIdx.x == 0) *total += sum;
}

}  // namespace

void CudaKernels::run(const SumOfSquares& op) const {
  const std::int64_t count = op.x.count();
  if (count == 0) return;
  const std::int64_t num_blocks =
      std::min(kMaxBlocks, divide_up(count, std::int64_t{kThreads} * kFullWidth<float>));
  auto* partials = scratch_.elements<double>(num_blocks);
  with_width<float>(access_to(op.x), [&]<int width>() {
    launch(stream_, {static_cast<unsigned>(num_blocks), kThreads, sizeof(SumShared)},
           squares_kernel<width>, partials, elements<float>(op.x), count);
  });
  launch(stream_, {1, kThreads, sizeof(SumShared)}, add_kernel, elements<double>(op.sum), partials,
         num_blocks);
}

}  // namespace redspine::cuda
