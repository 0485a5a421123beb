#include "tests/cuda_on_host/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/cuda_on_host/poison.h"

namespace on_host {
namespace {

constexpr std::size_t kAlignment = 256;  // what cudaMalloc promises
constexpr std::size_t kGuardBytes = 256;

// Compares with a constant run of bytes, which is several times faster than byte by byte.
bool is_guard(const unsigned char* zone) {
  static const auto* const kPattern = [] {
    static unsigned char pattern[kGuardBytes];
    std::memset(pattern, kGuard, sizeof pattern);
    return pattern;
  }();
  permit(zone, kGuardBytes);
  const bool intact = std::memcmp(zone, kPattern, kGuardBytes) == 0;
  forbid(zone, kGuardBytes);
  return intact;
}

}  // namespace

void* MemoryTable::allocate(std::size_t bytes) {
  const std::size_t whole =
      (kGuardBytes + bytes + kGuardBytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* base = static_cast<unsigned char*>(std::aligned_alloc(kAlignment, whole));
  if (base == nullptr) return nullptr;
  unsigned char* memory = base + kGuardBytes;
  std::memset(base, kGuard, kGuardBytes);
  std::memset(memory, kPoison, bytes);
  std::memset(memory + bytes, kGuard, kGuardBytes);
  forbid(base, kGuardBytes);
  forbid(memory + bytes, kGuardBytes);
  const std::scoped_lock lock(mutex_);
  allocations_[memory] = {base, bytes};
  total_bytes_ += bytes;
  return memory;
}

bool MemoryTable::release(void* memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocations_.find(static_cast<unsigned char*>(memory));
  if (found == allocations_.end()) return false;
  const Allocation allocation = found->second;
  total_bytes_ -= allocation.bytes;
  allocations_.erase(found);
  permit(allocation.base, kGuardBytes + allocation.bytes + kGuardBytes);
  std::free(allocation.base);
  return true;
}

bool MemoryTable::holds(const void* memory, std::size_t bytes) const {
  const auto* begin = static_cast<const unsigned char*>(memory);
  const std::scoped_lock lock(mutex_);
  auto found = allocations_.upper_bound(begin);
  if (found == allocations_.begin()) return false;
  --found;
  const std::size_t offset = static_cast<std::size_t>(begin - found->first);
  return offset <= found->second.bytes && bytes <= found->second.bytes - offset;
}

std::string MemoryTable::damage() const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [memory, allocation] : allocations_) {
    const bool before = !is_guard(memory - kGuardBytes);
    if (before || !is_guard(memory + allocation.bytes)) {
      return fmt::format("wrote {} an allocation of {} bytes", before ? "before" : "behind",
                         allocation.bytes);
    }
  }
  return {};
}

std::size_t MemoryTable::total_bytes() const {
  const std::scoped_lock lock(mutex_);
  return total_bytes_;
}

// Both outlive every static object that still frees memory at the end of the program.
MemoryTable& device_memory() {
  static auto* const kTable = new MemoryTable;
  return *kTable;
}

MemoryTable& pinned_memory() {
  static auto* const kTable = new MemoryTable;
  return *kTable;
}

}  // namespace on_host
