#include "tensor/cuda/check.h"

#include <fmt/format.h>

#include "tensor/error.h"

namespace redspine {

void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw Error(
      fmt::format("{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status)),
      file, line);
}

}  // namespace redspine
