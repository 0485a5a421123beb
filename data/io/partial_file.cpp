#include "data/io/partial_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "tensor/error.h"

namespace redspine {
namespace {

File create_locked(const std::string& path, const std::string& key) {
  for (;;) {
    File file = File::open_to_replace(partial(path));
    if (file.try_lock() == FileLock::held_elsewhere) {
      throw ConfigError(key, fmt::format("{}: another process is writing it; legal: a name that no "
                                         "other job writes to at the same time",
                                         path));
    }
    // Its writer may have published or removed it since it was opened.
    if (!file.has_its_name()) continue;
    file.truncate();
    return file;
  }
}

}  // namespace

PartialFile::PartialFile(const std::string& path, const std::string& key)
    : path_(path), file_(create_locked(path, key)) {}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      file_(std::move(other.file_)),
      is_published_(other.is_published_) {}

PartialFile::~PartialFile() {
  if (path_.empty() || is_published_) return;
  std::error_code ignored;  // A destructor cannot report it, and the name already says enough.
  std::filesystem::remove(partial(path_), ignored);
}

void PartialFile::publish() {
  rename_file(partial(path_), path_);
  is_published_ = true;
}

}  // namespace redspine
