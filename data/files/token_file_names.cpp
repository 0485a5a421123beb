// find_token_files() of token_file.h: names and globs, before any file is opened.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/files/token_file.h"
#include "data/io/file.h"
#include "data/io/inputs.h"
#include "data/tokenizer/utf8.h"
#include "tensor/error.h"

namespace redspine {
namespace {

std::vector<std::string> match_prefixes(const std::string& pattern, const std::string& key) {
  std::vector<std::string> names = match_glob(pattern + ".idx", key);
  for (std::string& name : names) name.resize(name.size() - 4);
  return names;
}

bool is_half_of(const std::string& name, const std::string& prefix) {
  return name == prefix + ".idx" || name == prefix + ".bin";
}

}  // namespace

std::vector<std::string> find_token_files(const std::string& path, TokenFormat format,
                                          const std::string& key) {
  const bool may_be_pair = format == TokenFormat::automatic || format == TokenFormat::megatron;
  const bool may_be_file = format != TokenFormat::megatron;
  if ((may_be_file && exists(path, key)) ||
      (may_be_pair && (exists(path + ".idx", key) || exists(path + ".bin", key)))) {
    return {path};
  }
  std::vector<std::string> names;
  if (may_be_pair) names = match_prefixes(path, key);
  const std::vector<std::string> prefixes = names;
  if (may_be_file) {
    for (std::string& name : match_glob(path, key)) {
      const auto is_half = [&](const std::string& prefix) { return is_half_of(name, prefix); };
      if (std::none_of(prefixes.begin(), prefixes.end(), is_half)) names.push_back(std::move(name));
    }
  }
  if (names.empty()) {
    const std::string pair = fmt::format("the pair {}.bin and {}.idx", path, path);
    throw ConfigError(key, fmt::format("{}: does not exist and as a glob matches nothing; looked "
                                       "for {}",
                                       path,
                                       !may_be_file  ? pair
                                       : may_be_pair ? "a file of that name and " + pair
                                                     : "a file of that name"));
  }
  const std::vector<std::string> unfinished = match_glob(path + ".partial", key);
  if (may_be_file && !unfinished.empty()) {
    throw ConfigError(key,
                      fmt::format("{}: matches files of a set that is not complete: {} is of a "
                                  "run that was interrupted or goes on",
                                  path, unfinished.front()));
  }
  // Their names are written into checkpoints.
  for (const std::string& name : names) {
    const std::string problem = problem_in_name(name);
    if (!problem.empty()) throw ConfigError(key, fmt::format("{}: {}", name, problem));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace redspine
