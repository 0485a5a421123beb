// The memory of the device and the pinned memory of the host: every allocation begins poisoned and
// lies between two guard zones. Safe for use from several threads.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace on_host {

class MemoryTable {
 public:
  /// Null where there is no memory.
  void* allocate(std::size_t bytes);
  /// False where `memory` is not the begin of an allocation.
  bool release(void* memory);

  /// Does [memory, memory + bytes) lie within one allocation?
  bool holds(const void* memory, std::size_t bytes) const;
  /// Empty, or which guard zone was written.
  std::string damage() const;
  std::size_t total_bytes() const;

 private:
  struct Allocation {
    void* base;
    std::size_t bytes;
  };

  mutable std::mutex mutex_;
  std::map<const unsigned char*, Allocation> allocations_;  // [first byte that may be used]
  std::size_t total_bytes_ = 0;
};

MemoryTable& device_memory();
MemoryTable& pinned_memory();

}  // namespace on_host
