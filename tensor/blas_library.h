// OpenBLAS as a yardstick: the same products as ours, for comparison only. It is opened by the
// first call, so that whoever compares nothing needs none. Local; host memory, f32.
#pragma once

#include <string>

#include "tensor/kernels.h"

namespace redspine {

/// Whether the library could be opened.
bool has_blas_library();

/// Its name, version and kernels; without it, why it could not be opened.
std::string blas_description();

/// `op` by the library, on as many threads as the calling thread's OpenMP team has.
void run_by_blas_library(const Matmul& op);
void run_by_blas_library(const WeightGradient& op);

}  // namespace redspine
