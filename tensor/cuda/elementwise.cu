#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/launch.h"

namespace redspine {
namespace {

constexpr unsigned kBlockSize = 256;

__global__ void __launch_bounds__(kBlockSize)
    swiglu_kernel(float* out, const float* gate_up, std::int64_t count, std::int64_t cols) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlockSize + threadIdx.x;
  if (i >= count) return;
  const float* gate = gate_up + i / cols * 2 * cols + i % cols;
  out[i] = gate[0] / (1.0F + expf(-gate[0])) * gate[cols];
}

}  // namespace

void enqueue_swiglu(const Swiglu& op, cudaStream_t stream) {
  const std::int64_t count = op.out.count();
  if (count == 0) return;
  const auto num_blocks = static_cast<unsigned>((count + kBlockSize - 1) / kBlockSize);
  launch(stream, {.num_blocks = num_blocks, .block_size = kBlockSize}, swiglu_kernel,
         op.out.data<float>(), op.gate_up.data<float>(), count, op.out.cols());
}

}  // namespace redspine
