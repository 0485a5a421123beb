// The BLAS library of the machine as a yardstick: the same products as ours, for comparison only.
// Local; host memory, f32.
#pragma once

#include <string>

#include "tensor/kernels.h"

namespace redspine {

/// `op` by the library, on as many threads as the calling thread's OpenMP team has.
void run_by_blas_library(const Matmul& op);
void run_by_blas_library(const WeightGradient& op);

/// Name, version, and chosen core type of the library.
std::string blas_description();

}  // namespace redspine
