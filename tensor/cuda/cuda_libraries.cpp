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
  return fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10);
}

}  // namespace redspine
