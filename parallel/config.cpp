#include "parallel/config.h"

#include <fmt/format.h>

namespace redspine {

void ParallelConfig::validate(ConfigProblems& problems) const {
  if (tensor < 1) {
    problems.add("parallel.tensor", fmt::format("is {}; legal: 1 or more", tensor));
  }
}

}  // namespace redspine
