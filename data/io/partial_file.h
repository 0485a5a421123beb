// A file that grows under NAME.partial, and gets its name when it is complete.
//
// Who writes it holds a lock on it, so two writers of one name never mix: the second is told. What
// is left of one that was killed is not locked, and is written over. Move-only, local to a rank.
#pragma once

#include <string>

#include "data/io/file.h"

namespace redspine {

/// The name of a file that is not published yet.
inline std::string partial(const std::string& path) { return path + ".partial"; }

class PartialFile {
 public:
  /// The folder of `path` must exist. ConfigError under `key` where another process writes it.
  PartialFile(const std::string& path, const std::string& key);
  PartialFile(PartialFile&& other) noexcept;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  /// Removes what was not published.
  ~PartialFile();

  const std::string& path() const { return path_; }  // once it is published
  File& file() { return file_; }
  /// Gives the file its name, in place of an older one. Everything must be on the medium;
  /// sync_folder_of() then makes the name durable.
  void publish();

 private:
  std::string path_;  // empty: moved from
  File file_;
  bool is_published_ = false;
};

}  // namespace redspine
