#include "data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tensor/error.h"

namespace redspine {
namespace {

[[noreturn]] void fail(const std::string& path, const char* action) {
  throw Error(fmt::format("{}: {} failed: {}", path, action, std::strerror(errno)));
}

}  // namespace

File::File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File File::open(const std::string& path, const std::string& key) {
  // O_NONBLOCK: a named pipe would wait for its writer before it could be refused below.
  File file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor_ < 0) {
    throw ConfigError(key, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  struct stat status = {};
  if (::fstat(file.descriptor_, &status) != 0) fail(path, "fstat");
  if (!S_ISREG(status.st_mode)) throw ConfigError(key, path + ": is not a regular file");
  return file;
}

File File::create(const std::string& path) {
  File file(path, ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.descriptor_ < 0) fail(path, "creating");
  return file;
}

std::int64_t File::size() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) fail(path_, "fstat");
  return status.st_size;
}

void File::read_at(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t num_read = ::pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0) fail(path_, "reading");
    if (num_read == 0) {
      throw Error(fmt::format("{}: ends at byte {}, where {} more were expected", path_, offset,
                              bytes.size()));
    }
    offset += num_read;
    bytes = bytes.subspan(static_cast<std::size_t>(num_read));
  }
}

void File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t num_written = ::write(descriptor_, bytes.data(), bytes.size());
    if (num_written < 0 && errno == EINTR) continue;
    if (num_written < 0) fail(path_, "writing");
    bytes = bytes.subspan(static_cast<std::size_t>(num_written));
  }
}

void File::sync() {
  if (::fsync(descriptor_) != 0) fail(path_, "fsync");
}

void sync_folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = parent.empty() ? std::string(".") : parent;
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "opening");
  const int result = ::fsync(descriptor);
  ::close(descriptor);
  if (result != 0) fail(folder, "fsync");
}

}  // namespace redspine
