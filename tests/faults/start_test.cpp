// How a run goes on where it was: it may be asked to stop while it still looks at its checkpoint,
// and says what has changed since that was saved.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <ostream>

#include "tests/support/checkpoint_scene.h"
#include "tests/support/command_line.h"
#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kStopped = 75;

struct HeldStart {
  const char* name;
  int num_ranks;
  bool is_loading;  // else it verifies
  bool by_file;
};

void PrintTo(const HeldStart& start, std::ostream* out) { *out << start.name; }

class AStop : public ::testing::TestWithParam<HeldStart> {};

// From one of the reads of a checkpoint on, the disk gives nothing until the run has been asked.
TEST_P(AStop, EndsAStartThatTakesLong) {
  const HeldStart& held = GetParam();
  const CheckpointScene run;
  const auto start = [&](int held_from) {
    return Start{.num_ranks = held.num_ranks,
                 .settings = fmt::format("train.steps=4 checkpoint.verify={}", !held.is_loading),
                 .variables = fmt::format(
                     "LD_PRELOAD={} CRASH_BELOW={} CRASH_LOG={} HOLD_READS={} HOLD_UNTIL={}",
                     REDSPINE_CRASH_SHIM, run.checkpoints().string(), run.path("log").string(),
                     held_from, run.path("asked").string())};
  };
  const auto num_reads = [&](int rank) {
    return count(run.read("log"), fmt::format("{} read ", rank));
  };
  ASSERT_EQ(run.train({.num_ranks = held.num_ranks, .settings = "train.steps=4"}).exit_code, 0);
  const std::vector<std::string> trained = run.trained();
  const std::vector<std::string> names = run.names();
  constexpr int kNever = 1'000'000;
  ASSERT_EQ(run.train(start(kNever)).exit_code, 0) << "all steps were run: it reads and ends";
  const int all_reads = num_reads(0);
  fs::remove(run.path("log"));

  // Tensors are read from about a third of the reads on; where they are loaded, up to the end.
  const int held_from = held.is_loading ? all_reads * 2 / 3 : all_reads / 3;
  Job job(CheckpointScene::command(start(held_from)), run.folder());
  wait_until([&] { return num_reads(0) >= held_from || num_reads(1) >= held_from; });
  if (held.by_file) {
    run.write("runs/run/STOP", "");
  } else {
    kill(run.process(), SIGTERM);
  }
  run.write("asked", "");
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, kStopped) << ended.errors;
  EXPECT_LT(num_reads(0), all_reads - 5) << "it went on to the end";
  EXPECT_TRUE(matches(ended.output, fmt::format("*stopped while starting on request ({})*",
                                                held.by_file ? "the file STOP" : "SIGTERM")))
      << ended.output;
  EXPECT_EQ(ended.output.find("resuming from") != std::string::npos, held.is_loading);
  for (std::size_t at = 0; (at = ended.errors.find("[rank ", at)) != std::string::npos; ++at) {
    EXPECT_TRUE(ended.errors.substr(ended.errors.find("] ", at)).starts_with("] warning: "))
        << ended.errors;
  }
  EXPECT_FALSE(fs::exists(run.run_folder() / "STOP"));
  EXPECT_FALSE(fs::exists(run.run_folder() / "lock"));

  EXPECT_EQ(run.names(), names);
  EXPECT_EQ(run.trained(), trained);
  const Ended longer = run.train({.num_ranks = held.num_ranks, .settings = "train.steps=6"});
  EXPECT_EQ(longer.exit_code, 0) << longer.errors;
  const CheckpointScene other;
  ASSERT_EQ(other.train({.num_ranks = held.num_ranks, .settings = "train.steps=6"}).exit_code, 0);
  EXPECT_EQ(run.trained(), other.trained());
  EXPECT_EQ(run.hashes(6), other.hashes(6));
}

std::string name_of(const ::testing::TestParamInfo<HeldStart>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(BySignalOrFile, AStop,
                         ::testing::Values(HeldStart{"WhileItVerifies", 1, false, false},
                                           HeldStart{"WhileItLoads", 1, true, false},
                                           HeldStart{"WhileTwoRanksVerify", 2, false, true},
                                           HeldStart{"WhileTwoRanksLoad", 2, true, true}),
                         name_of);

TEST(AStart, SaysWhatHasChangedSinceTheCheckpoint) {
  const CheckpointScene run;
  ASSERT_EQ(run.train({.settings = "train.steps=2"}).exit_code, 0);
  const Ended ended =
      run.train({.num_ranks = 2, .settings = "train.steps=3 optimizer.learning_rate=2.0e-2"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_TRUE(matches(ended.output,
                      "*resuming from runs/run/checkpoints/step_00000002 after step 2 "
                      "*layout: 1 data x 1 tensor -> 2 data x 1 tensor *"
                      "optimizer.learning_rate: 0.01 -> 0.02 (*)*"))
      << ended.output;
  EXPECT_EQ(ended.output.find("optimizer.beta"), std::string::npos) << "that is as it was";
}

TEST(AStart, WithAnotherModelIsRejectedAndNothingIsLost) {
  const CheckpointScene run;
  ASSERT_EQ(run.train({.settings = "train.steps=2"}).exit_code, 0);
  const Ended ended = run.train({.settings = "train.steps=3 model.num_layers=2"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(
      matches(ended.errors, "*model.num_layers: is 2, but *step_00000002 was saved with 1*"))
      << ended.errors;
  EXPECT_EQ(run.steps(), (std::vector<std::int64_t>{1, 2}));
}

/// Everything below a folder, with the size and the time of its last change.
std::vector<std::string> contents(const fs::path& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    lines.push_back(fmt::format("{} {} {}", entry.path().string(),
                                entry.is_regular_file() ? entry.file_size() : 0,
                                entry.last_write_time().time_since_epoch().count()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(ADryRun, SaysWhereTheRunWouldStartAndTouchesNothing) {
  const CheckpointScene run;
  const Ended fresh = run.train({.settings = "train.steps=2 --dry-run"});
  EXPECT_EQ(fresh.exit_code, 0) << fresh.errors;
  EXPECT_TRUE(matches(fresh.output, "*starting at step 0 with new weights\n")) << fresh.output;
  EXPECT_FALSE(fs::exists(run.run_folder()));

  ASSERT_EQ(run.train({.settings = "train.steps=2"}).exit_code, 0);
  const std::vector<std::string> before = contents(run.run_folder());
  for (const int num_ranks : {1, 2}) {
    const Ended ended = run.train({.num_ranks = num_ranks, .settings = "train.steps=3 --dry-run"});
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_TRUE(
        matches(ended.output, "*resuming from runs/run/checkpoints/step_00000002 after step 2 *"))
        << ended.output;
  }
  const Ended other = run.train({.settings = "train.steps=3 model.num_layers=2 --dry-run"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(matches(other.errors, "*model.num_layers: is 2, but *step_00000002 was saved with*"))
      << other.errors;
  EXPECT_EQ(contents(run.run_folder()), before);
}

TEST(ADryRun, LooksAtEveryByteOfTheCheckpointThatIsNamed) {
  const CheckpointScene run;
  ASSERT_EQ(run.train({.settings = "train.steps=2"}).exit_code, 0);
  const fs::path file = run.checkpoint(2) / "optimizer-00001-of-00001.safetensors";
  std::string bytes = run.read(file.lexically_relative(run.folder()).string());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  run.write(file.lexically_relative(run.folder()).string(), bytes);
  const Ended ended = run.train(
      {.settings = "train.steps=3 checkpoint.resume=runs/run/checkpoints/step_00000002 --dry-run"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(matches(ended.errors, "*checkpoint.resume: *tensor *: differs from what was *"))
      << ended.errors;
}

}  // namespace
}  // namespace redspine::testing
