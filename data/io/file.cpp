#include "data/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace redspine {
namespace {

[[noreturn]] void fail(const std::string& path, const char* action) {
  throw Error(fmt::format("{}: {} failed: {}", path, action, std::strerror(errno)));
}

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

File::File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() { close(); }

void File::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

File File::open(const std::string& path, const std::string& key) {
  // O_NONBLOCK: a named pipe would wait for its writer before it could be rejected below.
  File file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor_ < 0 && (errno == EMFILE || errno == ENFILE)) {
    throw TooManyFiles(
        key, fmt::format("{}: cannot be opened: {}; raise the limit (ulimit -n, or nofile in "
                         "limits.conf), or join the files to fewer ones",
                         path, std::strerror(errno)));
  }
  if (file.descriptor_ < 0) {
    throw ConfigError(key, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  struct stat status = {};
  if (::fstat(file.descriptor_, &status) != 0) fail(path, "fstat");
  if (!S_ISREG(status.st_mode)) throw ConfigError(key, path + ": is not a regular file");
  return file;
}

File File::open_stream(const std::string& path) {
  const bool is_standard_input = path == "-";
  // A copy of the descriptor, so that closing it leaves the process its standard input.
  File file(is_standard_input ? "standard input" : path,
            is_standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                              : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.descriptor_ < 0) {
    throw ConfigError("",
                      fmt::format("{}: cannot be opened: {}", file.path_, std::strerror(errno)));
  }
  struct stat status = {};
  if (::fstat(file.descriptor_, &status) != 0) fail(file.path_, "fstat");
  if (S_ISDIR(status.st_mode)) throw ConfigError("", file.path_ + ": is a folder; legal: a file");
  return file;
}

File File::open_folder(const std::string& path) {
  File folder(path, ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.descriptor_ < 0) fail(path, "opening");
  return folder;
}

File File::create(const std::string& path) {
  File file(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.descriptor_ < 0) fail(path, "creating");
  return file;
}

File File::open_to_replace(const std::string& path) {
  File file(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file.descriptor_ < 0) fail(path, "creating");
  return file;
}

File File::append(const std::string& path) {
  File file(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.descriptor_ < 0) fail(path, "opening");
  return file;
}

std::int64_t File::size() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) fail(path_, "fstat");
  return status.st_size;
}

std::size_t File::read_up_to_end(std::int64_t offset, std::span<std::byte> bytes) const {
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t num_read = ::pread(descriptor_, bytes.data() + size, bytes.size() - size,
                                     offset + static_cast<std::int64_t>(size));
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0) fail(path_, "reading");
    if (num_read == 0) break;
    size += static_cast<std::size_t>(num_read);
  }
  return size;
}

void File::read_at(std::int64_t offset, std::span<std::byte> bytes) const {
  const std::size_t size = read_up_to_end(offset, bytes);
  if (size == bytes.size()) return;
  throw Error(fmt::format("{}: ends at byte {}, where {} more were expected", path_,
                          offset + static_cast<std::int64_t>(size), bytes.size() - size));
}

std::size_t File::read(std::span<std::byte> bytes) {
  for (;;) {
    const ssize_t num_read = ::read(descriptor_, bytes.data(), bytes.size());
    if (num_read >= 0) return static_cast<std::size_t>(num_read);
    if (errno != EINTR) fail(path_, "reading");
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

void File::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t num_written = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (num_written < 0 && errno == EINTR) continue;
    if (num_written < 0) fail(path_, "writing");
    offset += num_written;
    bytes = bytes.subspan(static_cast<std::size_t>(num_written));
  }
}

void File::sync() {
  if (::fsync(descriptor_) != 0) fail(path_, "fsync");
}

void File::truncate() {
  // A device has nothing to remove, and no length to set.
  if (size() > 0 && ::ftruncate(descriptor_, 0) != 0) fail(path_, "ftruncate");
}

FileLock File::try_lock() {
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return FileLock::held_elsewhere;
    if (errno != EINTR) return FileLock::not_supported;
  }
  return FileLock::taken;
}

bool File::has_its_name() const {
  struct stat mine = {};
  struct stat named = {};
  return ::fstat(descriptor_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

PathKind look_at(const std::string& path, const std::string& key) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    return S_ISDIR(status.st_mode) ? PathKind::folder : PathKind::other;
  }
  if (errno == ENOENT || errno == ENOTDIR) return PathKind::nothing;
  throw ConfigError(key, fmt::format("{}: cannot be reached: {}", path, std::strerror(errno)));
}

bool exists(const std::string& path, const std::string& key) {
  return look_at(path, key) != PathKind::nothing;
}

void prepare_output(const std::string& path, const std::string& key) {
  const auto reject = [&](int code) {
    throw ConfigError(key, fmt::format("{}: cannot be written: {}", path, std::strerror(code)));
  };
  const std::string folder = folder_of(path);
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) reject(failure.value());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) reject(errno);
  // The name under which it is written first is longer.
  look_at(path + ".partial", key);
}

void rename_file(const std::string& from, const std::string& to) {
  std::error_code code;
  std::filesystem::rename(from, to, code);
  if (code) throw Error(fmt::format("{}: renaming to {} failed: {}", from, to, code.message()));
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(path, "deleting");
}

void sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "opening");
  const int result = ::fsync(descriptor);
  ::close(descriptor);
  if (result != 0) fail(folder, "fsync");
}

}  // namespace redspine
