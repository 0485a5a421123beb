// What the other tests of this folder rely on: that a job's memory and its strays are seen.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

TEST(Job, ItsPeakMemoryIsThatOfTheLargestRank) {
  const Scene scene;
  const Ended ended =
      scene.run(Scene::on_ranks(2, "sh -c 'head -c 150000000 /dev/zero | tail -c 140000000 | wc'"));
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_GT(ended.peak_bytes, 140'000'000);
}

TEST(Job, AProcessThatOutlivesItIsSeenAndKilled) {
  const Scene scene;
  const Ended ended = scene.run("sh -c 'setsid sleep 60 & exit 3'");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.left_behind.size(), 1);
  EXPECT_LT(ended.seconds, 30);
}

TEST(Job, IsKilledAtItsTimeLimit) {
  const Scene scene;
  const Ended ended = scene.run("sh -c 'sleep 60; echo never'", 0.2);
  EXPECT_EQ(ended.exit_code, -1);
  EXPECT_EQ(ended.left_behind.size(), 2) << fmt::format("{}", ended.left_behind);
  EXPECT_LT(ended.seconds, 30);
}

TEST(Pattern, AStarStandsForAnyText) {
  EXPECT_TRUE(matches("a: is 3; legal: 4", "a: is 3; legal: 4"));
  EXPECT_TRUE(matches("a: is 3; legal: 4", "a: * legal: *"));
  EXPECT_FALSE(matches("a: is 3; legal: 4", "a: is 3"));
  EXPECT_FALSE(matches("a: is 3; legal: 4", "is 3*"));
  EXPECT_FALSE(matches("a: is 3; legal: 4", "a: *5"));
  EXPECT_FALSE(matches("a: is 3; legal: 4", "a: *legal*is*"));
}

}  // namespace
}  // namespace redspine::testing
