// What a user's problem must lead to: every rank ends within seconds with exit code 2, one of them
// says what was read, where, and what is legal, and nothing was allocated or written before.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "tests/support/scene.h"

namespace redspine::testing {

struct BadCase {
  const char* name;
  /// Makes the problem in the scene, which else would train.
  std::function<void(const Scene&)> make;
  /// What is told, one pattern per line, without "[rank R @ HOST] "; * stands for any text.
  std::vector<std::string> lines;
  /// More words of the command line.
  std::string words = "";
  std::vector<int> ranks = {1, 2};
};

/// So that a test's name is the problem's.
std::string name_of(const ::testing::TestParamInfo<BadCase>& info);
std::ostream& operator<<(std::ostream& out, const BadCase& bad_case);

/// Makes the problem and runs the job on each of its numbers of ranks, with no more rights than any
/// user has.
void expect_rejected(const BadCase& bad_case);

/// The job ended with exit code 2, rank `rank` alone told exactly `lines`, and nothing was left.
void expect_told_by(int rank, const std::vector<std::string>& lines, const Ended& ended);

bool matches(std::string_view text, std::string_view pattern);

}  // namespace redspine::testing
