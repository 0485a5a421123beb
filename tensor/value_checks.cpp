#include "tensor/value_checks.h"

#include <fmt/format.h>

#include <cmath>

namespace redspine {

void check_count(ConfigProblems& problems, const char* key, std::int64_t value,
                 std::int64_t minimum, std::int64_t maximum) {
  if (value < minimum || value > maximum) {
    problems.add(key, fmt::format("is {}; legal: {} to {}", value, minimum, maximum));
  }
}

void check_positive(ConfigProblems& problems, const char* key, double value) {
  if (!(value > 0.0) || !std::isfinite(value)) {
    problems.add(key, fmt::format("is {}; legal: a finite number above 0", value));
  }
}

void check_not_negative(ConfigProblems& problems, const char* key, double value) {
  if (!(value >= 0.0) || !std::isfinite(value)) {
    problems.add(key, fmt::format("is {}; legal: a finite number of at least 0", value));
  }
}

void check_fraction(ConfigProblems& problems, const char* key, double value) {
  if (!(value >= 0.0 && value < 1.0)) {
    problems.add(key, fmt::format("is {}; legal: 0 to below 1", value));
  }
}

}  // namespace redspine
