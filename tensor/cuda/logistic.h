// The logistic function for device code; see vector_math.h of the CPU. Local.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace redspine::cuda {

/// The logistic function and its slope value * (1 - value), both to full relative accuracy on both
/// sides: 1 - value is never computed.
struct Logistic {
  float value;
  float slope;
};

__device__ inline Logistic logistic(float x) {
  const float e = expf(-fabsf(x));
  const float upper = 1.0F / (1.0F + e);  // the value at |x|
  return {x < 0.0F ? e * upper : upper, e * upper * upper};
}

}  // namespace redspine::cuda
