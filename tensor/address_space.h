// Whether the address space that a process may have (`ulimit -v`) holds what a library is about to
// take: some do not end, or crash, where it does not. Local.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace redspine {

/// Whether `bytes` more could be mapped at this moment.
inline bool has_address_space(std::size_t bytes) {
  void* const place = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return false;
  ::munmap(place, bytes);
  return true;
}

}  // namespace redspine
