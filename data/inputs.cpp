#include "data/inputs.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "data/file.h"
#include "tensor/error.h"

namespace redspine {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code code;
  // Links to folders are not followed: they could lead in a circle.
  fs::recursive_directory_iterator at(folder, code);
  for (; !code && at != fs::recursive_directory_iterator(); at.increment(code)) {
    if (is_hidden(at->path())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file(code)) {
      files.push_back(at->path().string());
    }
    if (code) break;
  }
  if (code) {
    throw ConfigError("", fmt::format("{}: cannot be listed: {}", folder, code.message()));
  }
  if (files.empty()) throw ConfigError("", folder + ": is a folder without files");
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> files_of(const std::string& input) {
  if (input == "-") return {input};
  const PathKind kind = look_at(input, "");
  if (kind == PathKind::folder) return files_in(input);
  if (kind == PathKind::other) return {input};
  std::vector<std::string> files;
  for (const std::string& match : match_glob(input, "")) {
    if (look_at(match, "") != PathKind::folder) {
      files.push_back(match);
      continue;
    }
    const std::vector<std::string> inner = files_in(match);
    files.insert(files.end(), inner.begin(), inner.end());
  }
  if (files.empty()) {
    throw ConfigError("", input + ": does not exist and as a glob matches nothing");
  }
  return files;
}

}  // namespace

std::vector<std::string> find_inputs(const std::vector<std::string>& inputs) {
  Mistakes mistakes;
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    try {
      const std::vector<std::string> more = files_of(input);
      files.insert(files.end(), more.begin(), more.end());
    } catch (const ConfigError& error) {
      for (const Mistake& mistake : error.mistakes()) mistakes.add(mistake.key, mistake.text);
    }
  }
  if (std::count(files.begin(), files.end(), "-") > 1) {
    mistakes.add("", "-: is given more than once, but the standard input can be read only once");
  }
  mistakes.throw_if_any();
  return files;
}

std::int64_t total_size(const std::vector<std::string>& paths) {
  std::int64_t size = 0;
  for (const std::string& path : paths) {
    std::error_code code;
    if (!fs::is_regular_file(path, code)) return -1;
    size += static_cast<std::int64_t>(fs::file_size(path, code));
    if (code) return -1;
  }
  return size;
}

std::vector<std::string> match_glob(const std::string& pattern, const std::string& key) {
  glob_t found = {};
  // Unsorted: glob() would sort by the user's locale.
  errno = 0;
  int result = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_ERR, nullptr, &found);
  const int failure = errno;
  if (result == GLOB_ABORTED && failure == ENOENT) {
    // A folder that is not there, or a link to none, is no reason to leave out the others.
    ::globfree(&found);
    result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  }
  std::vector<std::string> names;
  if (result == 0) names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (result != 0 && result != GLOB_NOMATCH) {
    throw ConfigError(key, fmt::format("{}: a folder on the way cannot be listed: {}", pattern,
                                       std::strerror(failure)));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace redspine
