// What the other tests of this folder rely on: that a job's memory and its strays are seen, and
// what its ranks told.

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
  const Ended ended = scene.run("sh -c 'setsid sleep 600 & exit 3'");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.left_behind.size(), 1);
  EXPECT_LT(ended.seconds, 60);
}

TEST(Job, IsKilledAtItsTimeLimit) {
  const Scene scene;
  Job job("sh -c 'sleep 600 & echo >started; wait; echo never'", scene.folder());
  wait_until([&] { return scene.read("started") == "\n"; });
  const Ended ended = job.wait(0.2);
  EXPECT_EQ(ended.exit_code, -1);
  EXPECT_EQ(ended.left_behind.size(), 2) << fmt::format("{}", ended.left_behind);
  EXPECT_LT(ended.seconds, 60);
}

TEST(Job, WhatItsRanksToldIsWithoutWhatMpirunAdds) {
  Ended ended;
  ended.errors =
      "[rank 0 @ vm] first\n"
      "-----------------------------\n"
      "mpirun detected that one or more processes exited with non-zero status\n"
      "-----------------------------\n"
      "[vm:123] [[1,0],0] ORTE_ERROR_LOG: Not found in file state.c at line 1\n"
      "\n"
      "[warn] Epoll MOD(1) on fd 25 failed. Old events were 6: Bad file descriptor\n"
      "[rank 1 @ vm] second\n";
  EXPECT_EQ(told(ended), (std::vector<std::string>{"[rank 0 @ vm] first", "[rank 1 @ vm] second"}));
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
