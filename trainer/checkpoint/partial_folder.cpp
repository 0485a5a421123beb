#include "trainer/checkpoint/partial_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "data/io/folders.h"
#include "data/io/partial_file.h"
#include "tensor/error.h"

namespace redspine {
namespace {

File make_locked(const std::string& published_path, const std::string& key) {
  const std::string path = partial(published_path);
  for (;;) {
    const bool is_new = ::mkdir(path.c_str(), 0777) == 0;
    if (!is_new && errno != EEXIST) {
      throw Error(fmt::format("{}: creating the folder failed: {}", path, std::strerror(errno)));
    }
    File folder = File::open_folder(path);
    const FileLock lock = folder.try_lock();
    if (lock == FileLock::held_elsewhere) {
      throw ConfigError(key, fmt::format("{}: another process is writing it; legal: a name that no "
                                         "other job writes to at the same time",
                                         published_path));
    }
    if (lock == FileLock::not_supported && !is_new) {
      throw ConfigError(key, fmt::format("{}: is there, from a command that was stopped or still "
                                         "runs; delete it if it was stopped",
                                         path));
    }
    // Who filled it may have published or removed it since it was opened.
    if (!folder.has_its_name()) continue;
    for (const std::string& name : names_in(path)) remove_file(fmt::format("{}/{}", path, name));
    return folder;
  }
}

}  // namespace

PartialFolder::PartialFolder(const std::string& path, const std::string& key)
    : published_path_(path), lock_(make_locked(path, key)) {}

PartialFolder::~PartialFolder() {
  if (is_published_) return;
  try {
    remove_folder(path());
  } catch (const std::exception&) {
    return;  // What cannot be deleted must not hide why it has to be.
  }
}

void PartialFolder::publish() {
  rename_path(path(), published_path_);
  is_published_ = true;
  sync_folder_of(published_path_);
}

}  // namespace redspine
