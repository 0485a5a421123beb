// Attention by a library's fused kernels, where they are in this build, on this machine, and made
// for the shape at hand. Which implementation there is, the build chooses. Owned by the kernels;
// used from one thread.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "tensor/cuda/scratch.h"
#include "tensor/kernels.h"

namespace redspine::cuda {

class FusedAttention {
 public:
  FusedAttention() = default;
  FusedAttention(const FusedAttention&) = delete;
  FusedAttention& operator=(const FusedAttention&) = delete;
  virtual ~FusedAttention() = default;

  /// Enqueues the operation; or returns false, with nothing done, where the library has no way to
  /// compute it, or none that gives the same bits every time.
  virtual bool run(const Attention& op) = 0;
  virtual bool run(const AttentionBackward& op) = 0;
};

/// Null where there is none. `scratch` lends the library its workspace; both outlive the result.
std::unique_ptr<FusedAttention> make_fused_attention(cudaStream_t stream, Scratch& scratch);

}  // namespace redspine::cuda
