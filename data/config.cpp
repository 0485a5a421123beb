#include "data/config.h"

#include <fmt/format.h>

#include <cmath>

namespace redspine {
namespace {

void check_paths(ConfigProblems& problems, const char* key,
                 const std::vector<DataFileConfig>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].path.empty()) {
      problems.add(fmt::format("{}[{}].path", key, i),
                   "is empty; legal: a token file, a Megatron prefix, or a glob of them");
    }
  }
}

}  // namespace

void DataConfig::validate(ConfigProblems& problems) const {
  if (train.empty()) {
    problems.add("data.train", "names no file; legal: at least one entry {path: ..., weight: ...}");
  }
  check_paths(problems, "data.train", train);
  check_paths(problems, "data.validation", validation);
  for (std::size_t i = 0; i < train.size(); ++i) {
    const double weight = train[i].weight;
    if (!(weight > 0.0) || !std::isfinite(weight)) {
      problems.add(fmt::format("data.train[{}].weight", i),
                   fmt::format("is {}; legal: a finite number above 0", weight));
    }
  }
}

}  // namespace redspine
