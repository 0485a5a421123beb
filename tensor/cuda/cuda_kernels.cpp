#include "tensor/cuda/cuda_kernels.h"

namespace redspine::cuda {

CudaKernels::CudaKernels(cudaStream_t stream)
    : stream_(stream), scratch_(stream), fused_attention_(make_fused_attention(stream, scratch_)) {}

}  // namespace redspine::cuda
