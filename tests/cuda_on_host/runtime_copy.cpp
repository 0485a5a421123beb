// Copies and fills. A copy from pageable host memory has taken its source when the call returns,
// and no more, even cudaMemcpy; one to pageable host memory is done by then, as CUDA documents. All
// others are deferred, and cudaMemcpy waits for them.

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "tests/cuda_on_host/device_memory.h"
#include "tests/cuda_on_host/device_queue.h"
#include "tests/cuda_on_host/runtime_api.h"

namespace on_host {
namespace {

bool on_device(const void* memory, std::size_t bytes) {
  return device_memory().holds(memory, bytes);
}

// The direction must be what the pointers say, and both ends within one allocation.
bool is_legal_copy(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return on_device(to, bytes) && !on_device(from, 1);
    case cudaMemcpyDeviceToHost:
      return !on_device(to, 1) && on_device(from, bytes);
    case cudaMemcpyDeviceToDevice:
      return on_device(to, bytes) && on_device(from, bytes);
    default:
      return false;
  }
}

}  // namespace
}  // namespace on_host

using on_host::DeviceQueue;

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  DeviceQueue& queue = DeviceQueue::instance();
  if (bytes == 0) return queue.fault();
  if (!on_host::is_legal_copy(to, from, bytes, kind)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyHostToDevice && !on_host::pinned_memory().holds(from, bytes)) {
    const auto* begin = static_cast<const unsigned char*>(from);
    return queue.give(stream, [to, staged = std::vector<unsigned char>(begin, begin + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
      return true;
    });
  }
  const cudaError_t error = queue.give(stream, [to, from, bytes] {
    std::memmove(to, from, bytes);
    return true;
  });
  if (error == cudaSuccess && kind == cudaMemcpyDeviceToHost &&
      !on_host::pinned_memory().holds(to, bytes)) {
    return queue.synchronize(stream);
  }
  return error;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  const bool is_on_its_way =
      kind == cudaMemcpyHostToDevice && !on_host::pinned_memory().holds(from, bytes);
  return error == cudaSuccess && !is_on_its_way ? cudaStreamSynchronize(nullptr) : error;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  DeviceQueue& queue = DeviceQueue::instance();
  if (bytes == 0) return queue.fault();
  if (!on_host::on_device(memory, bytes)) return cudaErrorInvalidValue;
  return queue.give(stream, [memory, value, bytes] {
    std::memset(memory, value, bytes);
    return true;
  });
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  const cudaError_t error = cudaMemsetAsync(memory, value, bytes, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}
