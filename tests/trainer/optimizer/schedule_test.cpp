#include "trainer/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace redspine {
namespace {

constexpr ScheduleKind kKinds[] = {ScheduleKind::constant, ScheduleKind::linear,
                                   ScheduleKind::cosine, ScheduleKind::wsd};

ScheduleConfig schedule(ScheduleKind kind) {
  return {.kind = kind, .warmup_steps = 10, .decay_steps = 110, .min_ratio = 0.1};
}

TEST(Schedule, RisesInEqualStepsThroughTheWarmUp) {
  for (const ScheduleKind kind : kKinds) {
    EXPECT_DOUBLE_EQ(schedule_factor(schedule(kind), 1), 0.1);
    EXPECT_DOUBLE_EQ(schedule_factor(schedule(kind), 5), 0.5);
    EXPECT_DOUBLE_EQ(schedule_factor(schedule(kind), 9), 0.9);
    EXPECT_DOUBLE_EQ(schedule_factor(schedule(kind), 10), 1.0);
  }
}

TEST(Schedule, ConstantStaysAtThePeak) {
  EXPECT_EQ(schedule_factor(schedule(ScheduleKind::constant), 11), 1.0);
  EXPECT_EQ(schedule_factor(schedule(ScheduleKind::constant), 110), 1.0);
  EXPECT_EQ(schedule_factor(schedule(ScheduleKind::constant), 1'000'000'000'000), 1.0);
}

TEST(Schedule, LinearFallsInEqualSteps) {
  const ScheduleConfig config = schedule(ScheduleKind::linear);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 11), 1.0 - 0.009);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 60), 0.55);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 110), 0.1);
}

TEST(Schedule, CosineFallsAsHalfAWave) {
  const ScheduleConfig config = schedule(ScheduleKind::cosine);
  // A quarter of the way: (1 + cos(45 degrees)) / 2 of the range.
  EXPECT_DOUBLE_EQ(schedule_factor(config, 35),
                   0.1 + 0.9 * 0.5 * (1.0 + std::numbers::sqrt2 / 2.0));
  EXPECT_DOUBLE_EQ(schedule_factor(config, 60), 0.55);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 110), 0.1);
}

TEST(Schedule, WsdStaysAtThePeakAndFallsInTheLastFifth) {
  const ScheduleConfig config = schedule(ScheduleKind::wsd);  // the last 22 of 110 steps
  EXPECT_EQ(schedule_factor(config, 11), 1.0);
  EXPECT_EQ(schedule_factor(config, 88), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 99), 0.55);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 110), 0.1);
}

TEST(Schedule, StaysAtItsLastValueBeyondItsEnd) {
  for (const ScheduleKind kind : {ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::wsd}) {
    for (const std::int64_t step : {111, 1000, 2'000'000'000}) {
      EXPECT_DOUBLE_EQ(schedule_factor(schedule(kind), step), 0.1);
    }
  }
}

TEST(Schedule, StartsBelowThePeakWithoutWarmUp) {
  for (const ScheduleKind kind : kKinds) {
    ScheduleConfig config = schedule(kind);
    config.warmup_steps = 0;
    config.decay_steps = 100;
    const double first = schedule_factor(config, 1);
    EXPECT_GE(first, 0.99);
    EXPECT_LE(first, 1.0);
  }
  ScheduleConfig config = schedule(ScheduleKind::linear);
  config.warmup_steps = 0;
  config.decay_steps = 100;
  EXPECT_DOUBLE_EQ(schedule_factor(config, 1), 1.0 - 0.009);
}

// Where the warm-up is longer than the schedule, nothing is left to fall along: the last value.
TEST(Schedule, AWarmUpBeyondTheEndIsFollowedByTheLastValue) {
  for (const ScheduleKind kind : kKinds) {
    ScheduleConfig config = schedule(kind);
    config.warmup_steps = 200;
    EXPECT_DOUBLE_EQ(schedule_factor(config, 150), 0.75);
    EXPECT_DOUBLE_EQ(schedule_factor(config, 199), 0.995);
    EXPECT_DOUBLE_EQ(schedule_factor(config, 200), kind == ScheduleKind::constant ? 1.0 : 0.1);
    EXPECT_DOUBLE_EQ(schedule_factor(config, 201), kind == ScheduleKind::constant ? 1.0 : 0.1);
  }
}

TEST(Schedule, IsBetweenZeroAndOneAndJumpsNowhere) {
  for (const ScheduleKind kind : kKinds) {
    for (const std::int64_t warmup : {0, 1, 7, 100, 399}) {
      const ScheduleConfig config{
          .kind = kind, .warmup_steps = warmup, .decay_steps = 1000, .min_ratio = 0.0};
      // The steepest parts: the warm-up, the last fifth, half a wave over what the warm-up leaves.
      const double slope =
          std::max({1.0 / static_cast<double>(std::max<std::int64_t>(warmup, 1)), 1.0 / 200.0,
                    0.5 * std::numbers::pi / static_cast<double>(1000 - warmup)});
      double before = warmup > 0 ? 0.0 : 1.0;
      for (std::int64_t step = 1; step <= 1100; ++step) {
        const double factor = schedule_factor(config, step);
        ASSERT_GE(factor, 0.0);
        ASSERT_LE(factor, 1.0);
        ASSERT_LE(std::abs(factor - before), slope * (1.0 + 1e-9))
            << "kind " << static_cast<int>(kind) << ", warm-up " << warmup << ", step " << step;
        before = factor;
      }
    }
  }
}

constexpr OptimizerConfig kOptimizer{.learning_rate = 1e-3};

/// "KEY: TEXT", one warning per line.
std::string warnings(const ScheduleConfig& schedule, std::int64_t steps) {
  return ConfigError(schedule_warnings(kOptimizer, schedule, steps)).what();
}

TEST(Schedule, IsSaidInALine) {
  EXPECT_EQ(describe_schedule(kOptimizer, schedule(ScheduleKind::cosine)),
            "learning rate: 10 warm-up steps to 0.001, then cosine to 0.0001 at step 110\n");
  EXPECT_EQ(describe_schedule(kOptimizer, {.kind = ScheduleKind::constant, .warmup_steps = 1}),
            "learning rate: 1 warm-up step to 0.001, then constant\n");
  EXPECT_EQ(describe_schedule(kOptimizer, {.kind = ScheduleKind::linear, .warmup_steps = 0}),
            "learning rate: 0.001, linear to 0.0001 at step 19560\n");
}

TEST(Schedule, OfAWholeRunIsNoReasonToWarn) {
  for (const ScheduleKind kind : kKinds) {
    EXPECT_EQ(warnings(schedule(kind), 110), "");
    EXPECT_EQ(warnings(schedule(kind), 50), "");
    EXPECT_EQ(warnings({.kind = kind, .warmup_steps = 0, .decay_steps = 1}, 1), "");
  }
  EXPECT_EQ(warnings({.kind = ScheduleKind::constant, .warmup_steps = 5, .decay_steps = 5}, 50),
            "");
}

TEST(Schedule, AWarmUpThatTheRunDoesNotLiveToSeeIsWarnedOf) {
  EXPECT_EQ(warnings({.warmup_steps = 700, .decay_steps = 20}, 20),
            "schedule.warmup_steps: is 700 in a run of 20 steps: the learning rate only rises, to "
            "2.86e-05, 2.9% of optimizer.learning_rate");
}

TEST(Schedule, AWarmUpAsLongAsTheScheduleIsWarnedOf) {
  EXPECT_EQ(warnings({.warmup_steps = 20, .decay_steps = 20}, 20),
            "schedule.warmup_steps: is 20, and schedule.decay_steps 20: the learning rate falls to "
            "0.0001 at once when the warm-up ends");
}

TEST(Schedule, StepsBeyondTheScheduleAreWarnedOf) {
  EXPECT_EQ(
      warnings({.warmup_steps = 2, .decay_steps = 20}, 30),
      "schedule.decay_steps: is 20 in a run of 30 steps: the learning rate stays at 0.0001 for "
      "the 10 steps after it");
  EXPECT_EQ(
      warnings({.warmup_steps = 2, .decay_steps = 20, .min_ratio = 0.0}, 21),
      "schedule.decay_steps: is 20 in a run of 21 steps: the learning rate stays at 0 for the "
      "1 step after it, which trains nothing");
}

}  // namespace
}  // namespace redspine
