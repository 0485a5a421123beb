// The stand-in of CUDA's runtime: what tensor/cuda uses of it, for the host compiler. Kernels are
// ordinary functions here; each CUDA thread runs in a fiber of its own (cuda_on_host/block.h),
// and the host functions keep the meaning and the error codes of NVIDIA's documentation.
//
// Shared memory is offered in its dynamic form alone (`extern __shared__`, see
// tensor/cuda/launch.h): it can be poisoned and guarded, which a static array cannot.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/cuda_on_host/block.h"
#include "tests/cuda_on_host/vector_types.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Only a declaration can be weak: a static __shared__ array does not compile.
#define __shared__ __attribute__((weak))
// NOLINTEND(bugprone-reserved-identifier)

#include "tests/cuda_on_host/device_functions.h"
#include "tests/cuda_on_host/runtime_api.h"
