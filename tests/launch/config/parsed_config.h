// A configuration from a text, for tests of how it is read: what it comes to, or what is wrong.
#pragma once

#include <string>
#include <vector>

#include "launch/config/config_file.h"

namespace redspine::testing {

/// What is said of text that is no whole number.
inline constexpr const char* kWholeNumber =
    "legal: a whole number in digits alone, like 1000 (not 1e3, not 1000.0)";

/// The least that is no problem.
inline const std::string kMinimal =
    "data:\n"
    "  train: [{path: corpus}]\n"
    "train:\n"
    "  steps: 10\n";

inline Config parse(const std::string& text, const std::vector<std::string>& settings = {}) {
  return parse_config(text, "run.yaml", settings, 1).config;
}

/// All problems, a line each; "" where there are none.
inline std::string problems_of(const std::string& text,
                               const std::vector<std::string>& settings = {}, int world_size = 1) {
  try {
    parse_config(text, "run.yaml", settings, world_size);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace redspine::testing
