// A job that saves every step is killed at random moments, as the power of a machine or a batch
// system's patience ends: wherever that is, the next start goes on as if nothing had happened.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "tests/support/checkpoint_scene.h"

namespace redspine::testing {
namespace {

// How far the kills let it get is up to the machine, so what it is compared with is trained
// afterwards.
class RandomKill : public ::testing::Test {
 protected:
  static Start start_of(int num_ranks, std::int64_t num_steps) {
    return {.num_ranks = num_ranks,
            .settings = fmt::format("train.steps={} checkpoint.keep=1", num_steps)};
  }

  /// Starts a job and kills it so many times, each a moment after it began to train.
  void kill_often(int num_ranks, int num_times) {
    std::mt19937 random(1234);  // NOLINT(bugprone-random-generator-seed): the same every time
    std::uniform_int_distribution<int> delay_us(0, 40'000);
    for (int i = 0; i < num_times; ++i) {
      const std::int64_t before = run_.newest_step();
      std::filesystem::remove(run_.path("stdout"));  // of the last job
      Job job(CheckpointScene::command(start_of(num_ranks, kEndless)), run_.folder());
      // By turns from the start of its work and from the end of its first save.
      wait_until([&] {
        if (i % 2 == 1) return run_.newest_step() > before;
        const std::string output = run_.read("stdout");
        return output.find("resuming from") != std::string::npos ||
               output.find("starting at") != std::string::npos;
      });
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us(random)));
      kill(run_.process(), SIGKILL);
      const Ended ended = job.wait();
      ASSERT_EQ(ended.exit_code, 137) << ended.errors;
      ASSERT_GE(run_.newest_step(), before + i % 2) << "kill " << i;
      trained_.push_back(run_.trained());
    }
  }

  void expect_same_as_uninterrupted(int num_ranks) {
    const std::int64_t killed_at = run_.newest_step();
    const std::int64_t last_step = killed_at + 20;
    Start start = start_of(num_ranks, last_step);
    start.settings += " checkpoint.interval=0";
    const CheckpointScene uninterrupted;
    const Ended reference = uninterrupted.train(start);
    ASSERT_EQ(reference.exit_code, 0) << reference.errors;
    const Ended ended = run_.train(start);
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_TRUE(run_.trained() == uninterrupted.trained());
    EXPECT_EQ(run_.hashes(last_step), uninterrupted.hashes(last_step));
    EXPECT_EQ(run_.names(), (std::vector<std::string>{step_name(killed_at), step_name(last_step)}));
    for (std::size_t i = 0; i < trained_.size() && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("after kill {}", i));
      expect_prefix(trained_[i], uninterrupted.trained());
    }
  }

  const CheckpointScene run_;
  std::vector<std::vector<std::string>> trained_;  // after each kill
};

TEST_F(RandomKill, FortyTimesOnOneRank) {
  kill_often(1, 40);
  expect_same_as_uninterrupted(1);
}

TEST_F(RandomKill, TenTimesOnTwoRanks) {
  kill_often(2, 10);
  expect_same_as_uninterrupted(2);
}

}  // namespace
}  // namespace redspine::testing
