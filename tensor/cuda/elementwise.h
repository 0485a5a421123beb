// Element-wise kernels: one thread a group of elements, in 16-byte accesses where the views allow.
#pragma once

#include <cuda_runtime.h>

#include "tensor/kernels.h"

namespace redspine {

void enqueue_swiglu(const Swiglu& op, cudaStream_t stream);

}  // namespace redspine
