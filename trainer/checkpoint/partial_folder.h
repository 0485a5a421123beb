// A folder that is filled under NAME.partial, and gets its name when it is complete: what
// data/io/partial_file.h is for a file.
//
// Who fills it holds a lock on it, so that a second one of the same name is told. What is left of
// one that was killed is not locked, and is removed. Local.
#pragma once

#include <string>

#include "data/io/file.h"

namespace redspine {

class PartialFolder {
 public:
  /// The parent of `path` exists. ConfigError under `key` where another process fills it.
  PartialFolder(const std::string& path, const std::string& key);
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;
  /// Removes what was not published.
  ~PartialFolder();

  const std::string& path() const { return lock_.path(); }  // with .partial
  /// Gives the folder its name, in place of an empty one, and makes that durable.
  void publish();

 private:
  std::string published_path_;
  File lock_;
  bool is_published_ = false;
};

}  // namespace redspine
