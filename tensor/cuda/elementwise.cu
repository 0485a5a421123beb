#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/launch.h"

namespace redspine {
namespace {

constexpr unsigned kBlockSize = 256;

__global__ void __launch_bounds__(kBlockSize)
    add_kernel(float* out, const float* x, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlockSize + threadIdx.x;
  if (i < count) out[i] += x[i];
}

}  // namespace

void enqueue_add(const Add& op, cudaStream_t stream) {
  const std::int64_t count = op.out.count();
  if (count == 0) return;
  const auto num_blocks = static_cast<unsigned>((count + kBlockSize - 1) / kBlockSize);
  launch(stream, {.num_blocks = num_blocks, .block_size = kBlockSize}, add_kernel,
         op.out.data<float>(), op.x.data<float>(), count);
}

}  // namespace redspine
