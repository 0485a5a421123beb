// Reductions over the threads of a warp and of a block, in one fixed order. Device code; local.
#pragma once

#include <cuda_runtime.h>

namespace redspine::cuda {

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

struct Plus {
  template <class Value>
  __device__ Value operator()(Value a, Value b) const {
    return a + b;
  }
};

/// The larger one; a NaN is passed over.
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Over `lanes` neighbouring lanes, a power of 2; the same bits in all of them.
template <int lanes = kWarpSize, class Value, class Combine>
__device__ Value reduce_lanes(Value value, Combine combine) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

inline constexpr int kMaxWarps = 32;

/// The shared memory of kernels that need it for reduce_block alone.
template <class Value>
struct ReductionShared {
  Value per_warp[kMaxWarps];
};

/// Over a block of at most kMaxWarps whole warps; the same bits in every thread. Every thread must
/// call it. `per_warp` is shared memory that the block uses for nothing else.
template <class Value, class Combine>
__device__ Value reduce_block(Value value, Value (&per_warp)[kMaxWarps], Combine combine) {
  value = reduce_lanes(value, combine);
  __syncthreads();  // an earlier reduction has been read
  if (threadIdx.x % kWarpSize == 0) per_warp[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  value = per_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarpSize; ++warp) {
    value = combine(value, per_warp[warp]);
  }
  return value;
}

}  // namespace redspine::cuda
