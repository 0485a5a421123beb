#include "data/inputs.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

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
    } else if (at->is_regular_file()) {
      files.push_back(at->path().string());
    }
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
  std::error_code code;
  const fs::file_status status = fs::status(input, code);
  if (fs::is_directory(status)) return files_in(input);
  if (fs::exists(status)) return {input};
  std::vector<std::string> files;
  for (const std::string& match : match_glob(input)) {
    if (!fs::is_directory(match)) {
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

std::vector<std::string> match_glob(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> names;
  // Unsorted: glob() would sort by the user's locale.
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace redspine
