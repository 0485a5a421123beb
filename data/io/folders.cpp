#include "data/io/folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "data/io/file.h"
#include "tensor/error.h"

namespace redspine {
namespace {

[[noreturn]] void fail(const std::string& action) {
  throw Error(fmt::format("{} failed: {}", action, std::strerror(errno)));
}

}  // namespace

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) fail(path + ": creating the folder");
}

void rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    fail(fmt::format("{}: renaming it to {}", from, to));
  }
}

void sync_folder(const std::string& path) { sync_folder_of(path + "/"); }

void forget_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
}

std::vector<std::string> names_in(const std::string& path) {
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    fail(path + ": opening the folder");
  }
  std::vector<std::string> names;
  errno = 0;
  for (const dirent* entry = nullptr; (entry = ::readdir(folder)) != nullptr;) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  const int failure = errno;
  ::closedir(folder);
  errno = failure;
  if (failure != 0) fail(path + ": reading the folder");
  std::sort(names.begin(), names.end());
  return names;
}

void remove_folder(const std::string& path) {
  for (const std::string& name : names_in(path)) remove_file(fmt::format("{}/{}", path, name));
  if (::rmdir(path.c_str()) != 0) fail(path + ": deleting the folder");
}

std::string directory_problem(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    return errno == ENOENT ? "does not exist" : std::strerror(errno);
  }
  return S_ISDIR(status.st_mode) ? "" : "is no directory";
}

void check_is_directory(const std::string& path) {
  const std::string problem = directory_problem(path);
  if (!problem.empty()) throw ConfigError("", fmt::format("{}: {}", path, problem));
}

void write_text(const std::string& path, std::string_view text) {
  File file = File::create(path);
  file.write(std::as_bytes(std::span(text)));
  file.sync();
}

void replace_text(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  write_text(fresh, text);
  rename_path(fresh, path);
  sync_folder_of(path);
}

std::string read_text(const std::string& path, std::int64_t max_bytes) {
  const File file = File::open(path, "");
  const std::int64_t size = file.size();
  if (size > max_bytes) {
    throw ConfigError("",
                      fmt::format("{}: has {} bytes; legal: at most {}", path, size, max_bytes));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace redspine
