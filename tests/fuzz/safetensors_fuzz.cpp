// Any bytes as a safetensors file: an error with a name, or tensors that can all be read.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tensor/error.h"
#include "trainer/checkpoint/format/safetensors.h"

namespace redspine {
namespace {

/// A file in memory, by a path like any other.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  void fill(const std::uint8_t* bytes, std::size_t size) const {
    if (ftruncate(descriptor_, 0) != 0) std::abort();
    if (pwrite(descriptor_, bytes, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Tensors without elements may have any dims; those with some are no larger than the file.
void read_all(const SafetensorsFile& file, std::size_t file_bytes) {
  for (const SafetensorsEntry& entry : file.header().entries) {
    if (file.find(entry.name) != &entry) std::abort();
    if (entry.end - entry.begin > static_cast<std::int64_t>(file_bytes)) std::abort();
    const auto num_bytes = static_cast<std::size_t>(entry.end - entry.begin);
    std::vector<std::byte> bytes(num_bytes);
    file.read_bytes(entry, 0, bytes);
    if (!is_real(entry.type)) continue;
    std::vector<float> values(num_bytes / static_cast<std::size_t>(bytes_of(entry.type)));
    file.read_floats(entry, 0, values);
  }
}

}  // namespace
}  // namespace redspine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const redspine::MemoryFile file;
  file.fill(bytes, size);
  try {
    redspine::read_all(redspine::SafetensorsFile::open(file.path()), size);
  } catch (const redspine::ConfigError& error) {
    if (std::string(error.what()).find(file.path()) == std::string::npos) std::abort();
  }
  return 0;
}
