// Turns a CUDA status into an Error that names the call and what CUDA says of it.
#pragma once

#include <cuda_runtime.h>

namespace redspine {

/// Throws Error unless `status` is success. `call` is the function's name.
void check_cuda(cudaError_t status, const char* call, const char* file = __builtin_FILE(),
                int line = __builtin_LINE());

}  // namespace redspine
