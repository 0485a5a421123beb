#include "data/io/inputs.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "data/io/file.h"
#include "tensor/error.h"

namespace redspine {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

/// What cannot be read in a folder is not left out: nobody would miss it.
class FolderWalk {
 public:
  explicit FolderWalk(ConfigProblems& problems) : problems_(problems) {}

  void walk(const fs::path& folder) {
    std::error_code code;
    struct stat status = {};
    const std::string name = folder.string();
    if (::stat(name.c_str(), &status) != 0) code = {errno, std::generic_category()};
    const std::pair<dev_t, ino_t> id(status.st_dev, status.st_ino);
    if (!code && std::find(above_.begin(), above_.end(), id) != above_.end()) {
      problems_.add("", name + ": is a link to a folder that it lies in: it leads in a circle");
      return;
    }
    above_.push_back(id);
    fs::directory_iterator at;
    if (!code) at = fs::directory_iterator(folder, code);
    for (; !code && at != fs::directory_iterator(); at.increment(code)) {
      if (!is_hidden(at->path())) visit(at->path());
    }
    if (code) problems_.add("", fmt::format("{}: cannot be listed: {}", name, code.message()));
    above_.pop_back();
  }

  /// In byte order.
  std::vector<std::string> files() {
    std::sort(files_.begin(), files_.end());
    return std::move(files_);
  }

 private:
  void visit(const fs::path& path) {
    std::error_code code;
    const fs::file_status status = fs::status(path, code);  // of what a link leads to
    const std::string name = path.string();
    if (fs::is_directory(status)) {
      walk(path);
    } else if (fs::is_regular_file(status)) {
      files_.push_back(name);
    } else if (fs::exists(status)) {
      problems_.add("", name + ": is a pipe, a socket or a device; legal: files and folders");
    } else {
      problems_.add("", fmt::format("{}: is a link that leads nowhere: {}", name,
                                    std::generic_category().message(code ? code.value() : ENOENT)));
    }
  }

  ConfigProblems& problems_;
  std::vector<std::string> files_;
  std::vector<std::pair<dev_t, ino_t>> above_;  // the folders that the present one is in, and it
};

class InputFinder {
 public:
  explicit InputFinder(const OwnFiles& own) : own_(own) {}

  void add(const std::string& input) {
    if (input == "-") {
      found_.files.push_back(input);
      return;
    }
    std::error_code code;
    const fs::file_status status = fs::status(input, code);
    if (fs::is_directory(status)) {
      add_folder(input);
    } else if (!fs::exists(status)) {
      add_glob(input, code);
    } else if (own_.contains(input)) {
      problems_.add("", input +
                            ": is an input, and written or used as the tokenizer by the same "
                            "command; legal: its folder or a quoted glob, which leave it out");
    } else {
      found_.files.push_back(input);
    }
  }

  FoundInputs finish() {
    if (std::count(found_.files.begin(), found_.files.end(), "-") > 1) {
      problems_.add("", "-: is given more than once, but the standard input can be read only once");
    }
    if (found_.files.empty() && problems_.empty() && !found_.left_out.empty()) {
      problems_.add("", found_.left_out.front() +
                            ": no input has files but those of this command, such as this one");
    }
    problems_.throw_if_any();
    return std::move(found_);
  }

 private:
  void add_folder(const std::string& folder) {
    const std::size_t num_problems = problems_.all().size();
    FolderWalk walk(problems_);
    walk.walk(folder);
    const std::vector<std::string> files = walk.files();
    if (files.empty() && problems_.all().size() == num_problems) {
      problems_.add("", folder + ": is a folder without files");
    }
    for (const std::string& file : files) add_found(file);
  }
  /// `why_no_file` is why there is no file of that name.
  void add_glob(const std::string& pattern, const std::error_code& why_no_file) {
    const std::vector<std::string> matches = match_glob(pattern, "");
    if (matches.empty()) {
      const bool is_missing = why_no_file.value() == ENOENT || why_no_file.value() == ENOTDIR;
      problems_.add("",
                    is_missing || !why_no_file
                        ? pattern + ": does not exist and as a glob matches nothing"
                        : fmt::format("{}: cannot be read: {}", pattern, why_no_file.message()));
    }
    for (const std::string& match : matches) {
      std::error_code code;
      if (fs::is_directory(match, code)) {
        add_folder(match);
      } else {
        add_found(match);
      }
    }
  }
  void add_found(const std::string& file) {
    (own_.contains(file) ? found_.left_out : found_.files).push_back(file);
  }

  const OwnFiles& own_;
  FoundInputs found_;
  ConfigProblems problems_;
};

}  // namespace

FoundInputs find_inputs(const std::vector<std::string>& inputs, const OwnFiles& own) {
  InputFinder finder(own);
  for (const std::string& input : inputs) finder.add(input);
  return finder.finish();
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
