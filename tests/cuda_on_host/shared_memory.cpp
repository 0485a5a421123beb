#include "tests/cuda_on_host/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "tests/cuda_on_host/block.h"
#include "tests/cuda_on_host/poison.h"
#include "tests/cuda_on_host/vector_types.h"

namespace redspine {

inline constexpr std::size_t kGuardBytes = 4096;

// What `extern __shared__` of tensor/cuda/launch.h declares.
alignas(1024) uint4 block_shared_memory[(on_host::kMaxSharedBytes + kGuardBytes) / sizeof(uint4)];

}  // namespace redspine

namespace on_host {
namespace {

unsigned char* bytes_begin() {
  return reinterpret_cast<unsigned char*>(redspine::block_shared_memory);
}

}  // namespace

void shared_memory_begin(std::size_t bytes) {
  permit(bytes_begin(), kMaxSharedBytes + redspine::kGuardBytes);
  std::memset(bytes_begin(), kPoison, bytes);
  std::memset(bytes_begin() + bytes, kGuard, redspine::kGuardBytes);
  forbid(bytes_begin() + bytes, kMaxSharedBytes + redspine::kGuardBytes - bytes);
}

bool shared_memory_is_intact(std::size_t bytes) {
  permit(bytes_begin(), kMaxSharedBytes + redspine::kGuardBytes);
  return std::all_of(bytes_begin() + bytes, bytes_begin() + bytes + redspine::kGuardBytes,
                     [](unsigned char byte) { return byte == kGuard; });
}

}  // namespace on_host
