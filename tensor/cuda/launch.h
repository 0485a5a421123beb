// Launching a kernel, and the shared memory of a block. Included by .cu files.
//
// Kernels are launched by this function alone: `<<<>>>` is not C++, and the tests compile the same
// files for the host (tests/cuda_on_host), where each launch is checked. For the same reason shared
// memory is always the dynamic kind, by `shared_memory<T>()`: there it is poisoned and guarded.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "tensor/cuda/check.h"

namespace redspine {

struct LaunchShape {
  dim3 num_blocks;
  dim3 block_size;               // threads
  std::size_t shared_bytes = 0;  // at most 48 KiB
};

/// Enqueues kernel(arguments...). Throws Error where the launch is refused; a fault of the kernel
/// itself is reported by whatever waits for the stream.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.num_blocks;
  config.blockDim = shape.block_size;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
             "cudaLaunchKernelEx");
}

extern __shared__ uint4 block_shared_memory[];

/// The `shared_bytes` of this launch, aligned to 16 bytes; uninitialised when a block begins.
template <class T>
__device__ T* shared_memory() {
  return reinterpret_cast<T*>(block_shared_memory);
}

}  // namespace redspine
