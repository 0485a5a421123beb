// The directory of a run is deleted while the run is at work: nothing of it is lost.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <ostream>

#include "tests/support/checkpoint_scene.h"
#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

struct LossCase {
  const char* name;
  int num_ranks;
  const char* settings;
  std::function<void(const CheckpointScene&)> lose;
};

/// As `rm -rf` does, which goes on where a file that it has seen is gone before it gets there.
void remove_under_a_run(const fs::path& folder) {
  std::error_code has_changed_meanwhile;
  do {
    fs::remove_all(folder, has_changed_meanwhile);
  } while (has_changed_meanwhile);
}

void lose_all(const CheckpointScene& run) { remove_under_a_run(run.run_folder()); }

/// The job ended with the cause, and the next start goes on from its last step. `settings` are the
/// same for both.
void expect_made_again(const CheckpointScene& run, const Ended& ended, int num_ranks,
                       const std::string& settings) {
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  const std::int64_t step = run.newest_step();
  EXPECT_TRUE(matches(ended.errors,
                      fmt::format("*runs/run or what a run needs in it was deleted while the run "
                                  "was at work; it was made again, with metrics.jsonl and a "
                                  "checkpoint of step {}*",
                                  step)))
      << ended.errors;
  EXPECT_EQ(run.trained().size(), static_cast<std::size_t>(step)) << "every step has its line";

  const Ended resumed = run.train(
      {.num_ranks = num_ranks, .settings = fmt::format("{} train.steps={}", settings, step + 5)});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_NE(resumed.output.find(fmt::format("{} after step {}", step_name(step), step)),
            std::string::npos)
      << resumed.output;
  EXPECT_EQ(run.trained().size(), static_cast<std::size_t>(step) + 5);
}

void PrintTo(const LossCase& loss, std::ostream* out) { *out << loss.name; }

class LostDirectory : public ::testing::TestWithParam<LossCase> {};

TEST_P(LostDirectory, IsMadeAgainWithACheckpointAndTheRunEnds) {
  const LossCase& loss = GetParam();
  const CheckpointScene run;
  const std::string settings = fmt::format("train.eval_interval=0 {}", loss.settings);
  Job job(
      CheckpointScene::command({.num_ranks = loss.num_ranks,
                                .settings = fmt::format("{} train.steps={}", settings, kEndless)}),
      run.folder());
  wait_until([&] { return run.trained().size() > 20; });
  loss.lose(run);
  expect_made_again(run, job.wait(), loss.num_ranks, settings);
}

std::string name_of(const ::testing::TestParamInfo<LossCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Of, LostDirectory,
    ::testing::Values(LossCase{"ARunThatSavesAtItsEnd", 1, "checkpoint.interval=0", lose_all},
                      LossCase{"ARunThatSavesEachStep", 1, "checkpoint.interval=1", lose_all},
                      LossCase{"TwoRanks", 2, "checkpoint.interval=5", lose_all},
                      LossCase{"TheCheckpointsAlone", 1, "checkpoint.interval=0",
                               [](const auto& run) { remove_under_a_run(run.checkpoints()); }},
                      LossCase{
                          "TheMetricsAlone", 1, "checkpoint.interval=0",
                          [](const auto& run) { fs::remove(run.run_folder() / "metrics.jsonl"); }}),
    name_of);

// That the save has failed shows at the same step as the loss.
TEST(LostDirectory, UnderASaveLosesNoLineOfMetrics) {
  const CheckpointScene run;
  // A step takes longer than what is left of a save.
  run.write_tokens("train.u16", 2000);
  run.write_tokens("second.u16", 2000);
  const std::string settings =
      "train.eval_interval=0 checkpoint.interval=2 batch.global_batch_size=64";
  Job job(
      CheckpointScene::command({.settings = fmt::format("{} train.steps={}", settings, kEndless)}),
      run.folder());
  wait_until([&] { return run.trained().size() > 5; });
  // It stands still meanwhile, and so finds everything gone at once.
  wait_until([&] {
    kill(run.process(), SIGSTOP);
    for (const std::string& name : run.names()) {
      if (name.ends_with(".partial")) return true;
    }
    kill(run.process(), SIGCONT);
    return false;
  });
  lose_all(run);
  kill(run.process(), SIGCONT);
  expect_made_again(run, job.wait(), 1, settings);
}

// Somebody who deletes a run and starts another one in its place has two jobs at work.
TEST(LostDirectory, ThatAnotherRunHasTakenIsLeftToIt) {
  const CheckpointScene run;
  Job job(CheckpointScene::command(
              {.settings = fmt::format("train.steps={} checkpoint.interval=0", kEndless)}),
          run.folder());
  wait_until([&] { return run.trained().size() > 20; });
  fs::create_directories(run.run_folder("other") / "checkpoints");
  run.write("runs/other/metrics.jsonl", "theirs\n");
  fs::rename(run.run_folder(), run.run_folder("old"));
  fs::rename(run.run_folder("other"), run.run_folder());
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_TRUE(matches(ended.errors, "*metrics.jsonl: is another file by now*")) << ended.errors;
  EXPECT_EQ(run.read("runs/run/metrics.jsonl"), "theirs\n");
  EXPECT_EQ(run.names(), std::vector<std::string>{});
}

}  // namespace
}  // namespace redspine::testing
