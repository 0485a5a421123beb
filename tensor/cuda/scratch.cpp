#include "tensor/cuda/scratch.h"

#include <utility>

#include "tensor/cuda/check.h"

namespace redspine::cuda {

Scratch::Scratch(cudaStream_t stream) : stream_(stream) { bytes(kBytes); }

Scratch::~Scratch() { cudaFree(memory_); }

void* Scratch::bytes(std::size_t bytes) {
  if (bytes > size_bytes_) {
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    check_cuda(cudaFree(std::exchange(memory_, nullptr)), "cudaFree");
    size_bytes_ = 0;
    check_cuda(cudaMalloc(&memory_, bytes), "cudaMalloc");
    size_bytes_ = bytes;
  }
  return memory_;
}

}  // namespace redspine::cuda
