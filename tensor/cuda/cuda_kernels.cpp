#include "tensor/cuda/cuda_kernels.h"

namespace redspine::cuda {

CudaKernels::CudaKernels(cudaStream_t stream) : stream_(stream), scratch_(stream) {}

}  // namespace redspine::cuda
