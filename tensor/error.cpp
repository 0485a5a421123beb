#include "tensor/error.h"

#include <fmt/format.h>

#include <string_view>

#include "tensor/printable.h"

namespace redspine {
namespace {

std::string list(const std::vector<ConfigProblem>& problems) {
  std::string text;
  for (const ConfigProblem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += one_line(problem.key.empty() ? problem.text : problem.key + ": " + problem.text);
  }
  return text;
}

// A source path as it is known in the repository, wherever it was built.
std::string_view repository_path(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string_view::npos) return file;
  const std::size_t folder = file.rfind('/', slash - 1);
  return folder == std::string_view::npos ? file : file.substr(folder + 1);
}

}  // namespace

ConfigError::ConfigError(std::vector<ConfigProblem> problems)
    : std::runtime_error(list(problems)), problems_(std::move(problems)) {}

ConfigError::ConfigError(std::string key, std::string text)
    : ConfigError(std::vector<ConfigProblem>{{std::move(key), std::move(text)}}) {}

void ConfigProblems::throw_if_any() const {
  if (!all_.empty()) throw ConfigError(all_);
}

Error::Error(const std::string& message, const char* file, int line)
    : std::runtime_error(
          fmt::format("{} ({}:{})", printable_lines(message), repository_path(file), line)) {}

}  // namespace redspine
