// What a configuration's values are checked for: each adds one problem, with what is legal, where
// the value is not.
#pragma once

#include <cstdint>

#include "tensor/error.h"

namespace redspine {

void check_count(ConfigProblems& problems, const char* key, std::int64_t value,
                 std::int64_t minimum, std::int64_t maximum);
/// A finite number above 0.
void check_positive(ConfigProblems& problems, const char* key, double value);
/// A finite number of at least 0.
void check_not_negative(ConfigProblems& problems, const char* key, double value);
/// 0 to below 1.
void check_fraction(ConfigProblems& problems, const char* key, double value);

}  // namespace redspine
