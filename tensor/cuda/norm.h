// What the norm kernels share: one block per row, whose threads own columns. Device code; local.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/reduce.h"

namespace redspine::cuda {

enum class NormVariant { layer, rms };

inline constexpr int kNormThreads = 256;

/// body(c) for each piece [c, c + width) of columns that this thread owns: always the same ones.
template <int width, class Body>
__device__ void for_own_columns(std::int64_t cols, Body body) {
  for (std::int64_t c = std::int64_t{threadIdx.x} * width; c < cols;
       c += std::int64_t{blockDim.x} * width) {
    body(c);
  }
}

}  // namespace redspine::cuda
