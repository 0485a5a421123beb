// Memory that all ranks of a group map, each at an address of its own.
//
// Owns its mapping. Construction is collective over the group; destruction is local. Nothing of it
// is left in the file system once it is made, however the ranks end.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "parallel/group/process_group.h"

namespace redspine {

class SharedMemory {
 public:
  /// `size` bytes of zeros, at the start of a page. Null on every rank where the ranks are on
  /// several hosts, or where one cannot have the memory.
  static std::unique_ptr<SharedMemory> make(const ProcessGroup& group, std::size_t size);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit SharedMemory(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace redspine
