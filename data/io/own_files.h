// Files that a command itself writes, or reads as something other than text. Folders and globs
// among its inputs leave them out: a second run would take the output of the first for text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redspine {

class OwnFiles {
 public:
  /// The file, also while it is unpublished.
  void add(const std::string& path);
  /// PREFIX_000000.bin and on, also while they are unpublished.
  void add_shards(const std::string& prefix);

  /// However the file is named, by whatever links to its folder.
  bool contains(const std::string& path) const;

 private:
  struct Place {
    std::string folder;  // without links
    std::string name;    // of shards, their stem
  };
  static Place place_of(const std::string& path);

  std::vector<Place> files_;
  std::vector<Place> shards_;
};

/// Whether `name` is STEM_, six digits or more, and `ending`.
bool is_shard_name(std::string_view name, std::string_view stem, std::string_view ending);

}  // namespace redspine
