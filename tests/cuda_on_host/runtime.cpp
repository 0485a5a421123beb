#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <tuple>
#include <vector>

#include "tests/cuda_on_host/block.h"
#include "tests/cuda_on_host/device_memory.h"
#include "tests/cuda_on_host/device_queue.h"
#include "tests/cuda_on_host/runtime_api.h"
#include "tests/cuda_on_host/symbol.h"

namespace on_host {
namespace {

constexpr std::size_t kTotalBytes = std::size_t{8} << 30;

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

// What every function returns through.
cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

DeviceQueue& queue() { return DeviceQueue::instance(); }

int num_devices() {
  const char* text = std::getenv("REDSPINE_ON_HOST_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

bool is_legal(const dim3& size, const dim3& limit) {
  return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= limit.x && size.y <= limit.y &&
         size.z <= limit.z;
}

cudaError_t check_config(const cudaLaunchConfig_t& config) {
  if (!is_legal(config.gridDim, dim3(0x7fffffff, 65535, 65535)) ||
      !is_legal(config.blockDim, dim3(1024, 1024, 64)) ||
      config.blockDim.x * config.blockDim.y * config.blockDim.z > 1024) {
    return cudaErrorInvalidConfiguration;
  }
  if (config.dynamicSmemBytes > kMaxSharedBytes) return cudaErrorInvalidValue;
  if (config.numAttrs != 0) return cudaErrorInvalidValue;  // none is imitated
  return cudaSuccess;
}

// For tests/bench/kernel_resources.py: the configurations that each kernel was launched with.
void log_launch(const Grid& grid) {
  static const char* const kPath = std::getenv("REDSPINE_ON_HOST_LAUNCH_LOG");
  if (kPath == nullptr) return;
  static std::set<std::tuple<const void*, unsigned, std::size_t>> logged;
  const unsigned num_threads = grid.threads.x * grid.threads.y * grid.threads.z;
  if (!logged.emplace(grid.kernel, num_threads, grid.shared_bytes).second) return;
  std::ofstream(kPath, std::ios::app)
      << fmt::format("{}\t{}\t{}\n", symbol_name(grid.kernel), num_threads, grid.shared_bytes);
}

// Does this word look like an address, which programs and their memory have between these two?
bool is_address(std::uintptr_t word) {
  return word >= std::uintptr_t{1} << 40 && word < std::uintptr_t{1} << 47;
}

// Kernels reach only memory of the device, and of the host what is pinned.
void check_pointers(const Launch& launch) {
  for (std::size_t i = 0; i < launch.argument_words.size(); ++i) {
    for (const std::uintptr_t word : launch.argument_words[i]) {
      const auto* pointer = reinterpret_cast<const void*>(word);  // NOLINT: a word may be one
      if (is_address(word) && !device_memory().holds(pointer, 0) &&
          !pinned_memory().holds(pointer, 0)) {
        throw KernelFault(fmt::format("kernel {}: argument {} points to no device memory",
                                      symbol_name(launch.kernel), i + 1));
      }
    }
  }
}

// Nothing may have been written beside an allocation.
void check_guards(const void* kernel) {
  for (const MemoryTable* table : {&device_memory(), &pinned_memory()}) {
    const std::string damage = table->damage();
    if (!damage.empty()) throw KernelFault("kernel " + symbol_name(kernel) + " " + damage);
  }
}

}  // namespace

cudaError_t launch(const cudaLaunchConfig_t& config, Launch launch) {
  const cudaError_t error = check_config(config);
  if (error != cudaSuccess) {
    std::fprintf(stderr, "cuda_on_host: kernel %s cannot be launched with this configuration\n",
                 symbol_name(launch.kernel).c_str());
    return told(error);
  }
  const Grid grid{.blocks = config.gridDim,
                  .threads = config.blockDim,
                  .shared_bytes = config.dynamicSmemBytes,
                  .kernel = launch.kernel};
  const std::uint64_t seed = queue().random_seed();
  return told(queue().give(config.stream, [grid, seed, launch = std::move(launch)] {
    log_launch(grid);
    check_pointers(launch);
    run_grid(grid, launch.thread_body, seed);
    check_guards(grid.kernel);
    return true;
  }));
}

}  // namespace on_host

using on_host::device_memory;
using on_host::pinned_memory;
using on_host::queue;
using on_host::told;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
  }
  return "an error that the stand-in does not know";
}

// The text of a fault is more than a real device tells; so a failing test says what happened.
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorLaunchFailure) {
    thread_local std::string text;
    text = queue().fault_text();
    return text.c_str();
  }
  return cudaGetErrorName(error);
}

cudaError_t cudaGetLastError() {
  const cudaError_t fault = queue().fault();
  return fault != cudaSuccess ? fault : std::exchange(on_host::last_error, cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = on_host::num_devices();
  return told(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= on_host::num_devices()) return told(cudaErrorInvalidDevice);
  on_host::current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = on_host::current_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= on_host::num_devices()) return told(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "CUDA on the host");
  properties->totalGlobalMem = on_host::kTotalBytes;
  properties->sharedMemPerBlock = on_host::kMaxSharedBytes;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = 1024;
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = 2;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (device < 0 || device >= on_host::num_devices()) return told(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return told(queue().synchronize_all()); }

cudaError_t cudaDeviceReset() {
  queue().reset();
  on_host::last_error = cudaSuccess;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = on_host::kTotalBytes;
  *free = *total - std::min(*total, device_memory().total_bytes());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (queue().fault() != cudaSuccess) return told(queue().fault());
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  *memory = bytes == 0 || bytes > free ? nullptr : device_memory().allocate(bytes);
  return told(*memory == nullptr && bytes > 0 ? cudaErrorMemoryAllocation : cudaSuccess);
}

// Waits for the whole device first, as CUDA's does.
cudaError_t cudaFree(void* memory) {
  const cudaError_t error = queue().synchronize_all();
  if (memory != nullptr && !device_memory().release(memory)) return told(cudaErrorInvalidValue);
  return told(error);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = bytes == 0 ? nullptr : pinned_memory().allocate(bytes);
  return told(*memory == nullptr && bytes > 0 ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeHost(void* memory) {
  const cudaError_t error = queue().synchronize_all();
  if (memory != nullptr && !pinned_memory().release(memory)) return told(cudaErrorInvalidValue);
  return told(error);
}
