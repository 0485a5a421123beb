// The kernels of an NVIDIA GPU. Each run() enqueues its work on one stream and returns; inputs and
// outputs are f32, or bf16 where tensor/kernels.h allows it. Values are computed in f32 and rounded
// once. Sums have one fixed order: no atomics, no result depends on timing. Owned by the device;
// used from one thread.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "tensor/cuda/fused_attention.h"
#include "tensor/cuda/matmul_plans.h"
#include "tensor/cuda/scratch.h"
#include "tensor/kernels.h"

namespace redspine::cuda {

class CudaKernels final : public Kernels {
 public:
  /// `stream` must outlive the kernels.
  explicit CudaKernels(cudaStream_t stream);

  /// Whether attention in bf16 is a library's where it can be.
  bool has_fused_attention() const { return fused_attention_ != nullptr; }

#define REDSPINE_RUN(Operation) void run(const Operation& op) const override;
  REDSPINE_FOR_EACH_OPERATION(REDSPINE_RUN)
#undef REDSPINE_RUN

 private:
  // Any dim may be 0, where there is no epilogue. False, with nothing written, where the library
  // has no way with this epilogue; without one, there is a way or an Error.
  bool multiply(const Product& product) const;
  // By way of copies with aligned rows. Where `out` is one of them, it is written as it is.
  bool multiply_aligned(Product product) const;

  cudaStream_t stream_;
  // What a kernel keeps between two launches, and the plans of products: no part of a result.
  mutable Scratch scratch_;
  mutable MatmulPlans matmul_plans_;
  std::unique_ptr<FusedAttention> fused_attention_;  // may be null
};

}  // namespace redspine::cuda
