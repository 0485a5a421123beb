// What there is of CUDA, before a device is made.

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include "tensor/cuda/check.h"
#include "tensor/device.h"

namespace redspine {

int num_cuda_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string cuda_description() {
  int runtime = 0;
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const std::size_t cublas = cublasLtGetVersion();
  return fmt::format("{}.{}, cuBLASLt {}.{}.{}", runtime / 1000, runtime % 1000 / 10,
                     cublas / 10000, cublas / 100 % 100, cublas % 100);
}

}  // namespace redspine
