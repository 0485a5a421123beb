// What `redspine bench --json` prints. Local.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command_line.h"

namespace redspine::testing {

/// Its line of JSON; a failure of the test, and null, where the command failed or printed none.
inline nlohmann::json bench_line(const Result& result) {
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const std::size_t begin = result.output.find("{\"kind\":\"bench\"");
  EXPECT_NE(begin, std::string::npos) << result.output;
  return begin == std::string::npos ? nlohmann::json()
                                    : nlohmann::json::parse(result.output.substr(begin));
}

}  // namespace redspine::testing
