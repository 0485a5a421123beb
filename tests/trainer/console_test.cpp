#include "trainer/console.h"

#include <gtest/gtest.h>

#include <limits>

namespace redspine {
namespace {

TEST(FormatDuration, ShowsWhatIsNeeded) {
  EXPECT_EQ(format_duration(0.0), "00:00");
  EXPECT_EQ(format_duration(59.4), "00:59");
  EXPECT_EQ(format_duration(59.6), "01:00");
  EXPECT_EQ(format_duration(184.0), "03:04");
  EXPECT_EQ(format_duration(3599.6), "01:00:00");
  EXPECT_EQ(format_duration(2 * 3600 + 3 * 60 + 4), "02:03:04");
  EXPECT_EQ(format_duration(86400.0), "1d 00:00:00");
  EXPECT_EQ(format_duration(93784.0), "1d 02:03:04");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
}

// The test's standard output is a file while it is captured.
std::string shown(const StepReport& report) {
  ::testing::internal::CaptureStdout();
  {
    Console console(1000);
    console.show(report);
  }
  return ::testing::internal::GetCapturedStdout();
}

StepReport report() {
  return {.step = 7,
          .loss = 5.4321,
          .gradient_norm = 1.25,
          .learning_rate = 6e-4,
          .tokens = 0,
          .samples = 0,
          .batch_hash = 0,
          .weights_digest = {},
          .applied = true,
          .seconds = 2.0,
          .tokens_per_second = 8192.0,
          .tflops_per_rank = 0.0,
          .requests = {}};
}

TEST(Console, OffATerminalAStepIsAWholePlainLine) {
  const std::string line = shown(report());
  EXPECT_EQ(line.find_first_of("\r\033"), std::string::npos);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_NE(line.find("step    7/1000"), std::string::npos) << line;
  EXPECT_NE(line.find("loss 5.4321"), std::string::npos) << line;
  EXPECT_NE(line.find("8192 tokens/s"), std::string::npos) << line;
  EXPECT_EQ(line.find("SKIPPED"), std::string::npos) << line;
}

TEST(Console, ASkippedStepSaysSo) {
  StepReport skipped = report();
  skipped.applied = false;
  skipped.loss = std::numeric_limits<double>::quiet_NaN();
  const std::string line = shown(skipped);
  EXPECT_NE(line.find("loss nan"), std::string::npos) << line;
  EXPECT_NE(line.find("SKIPPED"), std::string::npos) << line;
}

TEST(Console, TheTimeLeftFollowsTheStepsLeft) {
  StepReport first = report();
  first.step = 1;  // 999 steps of 2 seconds
  EXPECT_NE(shown(first).find("left 33:18"), std::string::npos) << shown(first);
}

TEST(Console, TheTimeLeftIsThatOfSingleStepsWhereALineIsOfSeveral) {
  StepReport line = report();
  line.step = 991;
  line.seconds = 20.0;
  line.num_steps = 10;
  EXPECT_NE(shown(line).find("left 00:18"), std::string::npos) << shown(line);
}

TEST(Console, WhatIsSaidMovesNoCursor) {
  ::testing::internal::CaptureStdout();
  Console(10).say("saved runs/\x1b[2J/step_00000001");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "saved runs/\\x1b[2J/step_00000001\n");
}

TEST(Console, AValidationIsAWholeLineWithItsPerplexity) {
  ::testing::internal::CaptureStdout();
  {
    Console console(10);
    console.show(ValidationReport{.step = 5, .loss = 2.0, .tokens = 640});
  }
  const std::string line = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(line.find("validation loss 2.0000"), std::string::npos) << line;
  EXPECT_NE(line.find("perplexity 7.39"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

}  // namespace
}  // namespace redspine
