// Paths that the system does not follow, in a folder of a test: into a folder that nobody may
// enter, over a link to itself, of a name that is too long.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace redspine::testing {

struct BadPath {
  std::string path;  // relative to the folder
  std::string cause;
};

inline std::vector<BadPath> bad_paths() {
  return {{"closed/x", "Permission denied"},
          {"loop/x", "Too many levels of symbolic links"},
          {std::string(300, 'x'), "File name too long"}};
}

/// What stands in the way of these paths.
inline void make_obstacles(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "closed");
  std::filesystem::permissions(folder / "closed", std::filesystem::perms::none);
  std::filesystem::create_symlink("loop", folder / "loop");
}

}  // namespace redspine::testing
