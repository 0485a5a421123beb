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

class RandomKill : public ::testing::Test {
 protected:
  static constexpr int kLastStep = 3000;  // more than all the kills leave time for
  static constexpr const char* kSettings = "train.steps=3000 checkpoint.keep=1";

  /// Starts and kills `start` so many times, each a moment after it began to train.
  void kill_often(const Start& start, int num_times) {
    std::mt19937 random(1234);  // NOLINT(bugprone-random-generator-seed): the same every time
    std::uniform_int_distribution<int> delay_us(0, 40'000);
    for (int i = 0; i < num_times; ++i) {
      const std::int64_t before = run_.newest_step();
      std::filesystem::remove(run_.path("stdout"));  // of the last job
      Job job(CheckpointScene::command(start), run_.folder());
      // By turns from the start of its work and from the end of its first save.
      wait_until([&] {
        if (i % 2 == 1) return run_.newest_step() > before;
        const std::string output = run_.read("stdout");
        return output.find("resuming from") != std::string::npos ||
               output.find("starting at") != std::string::npos;
      });
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us(random)));
      kill(std::stoi(run_.read("pid.0")), SIGKILL);
      const Ended ended = job.wait(30.0);
      ASSERT_EQ(ended.exit_code, 137) << ended.errors;
      SCOPED_TRACE(fmt::format("kill {}, after step {}", i, run_.newest_step()));
      ASSERT_GE(run_.newest_step(), before + i % 2);
      expect_prefix(run_.trained(), expected_);
      if (HasFailure()) return;
    }
  }

  void expect_same_as_uninterrupted(Start start) {
    const std::string resumed_from = step_name(run_.newest_step());
    start.settings += " checkpoint.interval=0";
    const Ended ended = run_.train(start);
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_EQ(run_.trained(), expected_);
    EXPECT_EQ(run_.hashes(kLastStep), run_.hashes(kLastStep, "reference"));
    EXPECT_EQ(run_.names(), (std::vector<std::string>{resumed_from, step_name(kLastStep)}));
  }

  void train_reference(Start start) {
    start.run = "reference";
    start.settings += " checkpoint.interval=0";
    const Ended ended = run_.train(start);
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    expected_ = run_.trained("reference");
  }

  const CheckpointScene run_;
  std::vector<std::string> expected_;
};

TEST_F(RandomKill, FortyTimesOnOneRank) {
  const Start start{.settings = kSettings};
  train_reference(start);
  kill_often(start, 40);
  expect_same_as_uninterrupted(start);
}

TEST_F(RandomKill, TenTimesOnTwoRanks) {
  const Start start{.num_ranks = 2, .settings = kSettings};
  train_reference(start);
  kill_often(start, 10);
  expect_same_as_uninterrupted(start);
}

}  // namespace
}  // namespace redspine::testing
