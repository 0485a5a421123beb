// The same command gives the same bits, whatever is shown of it; and a job starts at once.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "tests/support/scene.h"

namespace redspine::testing {
namespace {

struct Layout {
  const char* name;
  int num_ranks;
  int num_threads;
  int tensor;
};

std::string name_of(const ::testing::TestParamInfo<Layout>& info) { return info.param.name; }

class Rerun : public ::testing::TestWithParam<Layout> {
 protected:
  static constexpr int kNumSteps = 12;

  Rerun() { scene_.edit("max_sequence_length: 32", "max_sequence_length: 32\n  dropout: 0.1"); }

  /// The metrics of a run named `run`, without the times and without checkpoints.
  std::vector<std::string> train(const std::string& run, const std::string& settings) const {
    const Layout& layout = GetParam();
    const std::string words = fmt::format(
        "--set run.name={} train.steps={} parallel.tensor={} schedule.warmup_steps=2 {}", run,
        kNumSteps, layout.tensor, settings);
    const Ended ended =
        scene_.run(fmt::format("env OMP_NUM_THREADS={} {}", layout.num_threads,
                               Scene::on_ranks(layout.num_ranks, Scene::train(words))));
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    std::vector<std::string> lines = scene_.metrics("runs/" + run);
    // Those of checkpoints name the run.
    std::erase_if(lines, [](const std::string& line) {
      return line.find(R"("kind":"checkpoint")") != std::string::npos;
    });
    return lines;
  }

  const Scene scene_;
};

std::vector<std::string> lines_with(const std::vector<std::string>& lines, std::string_view part) {
  std::vector<std::string> found;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(found),
               [&](const std::string& line) { return line.find(part) != std::string::npos; });
  return found;
}

TEST_P(Rerun, GivesTheSameBits) {
  const std::vector<std::string> first = train("first", "");
  EXPECT_EQ(lines_with(first, R"("kind":"train")").size(), kNumSteps);
  EXPECT_EQ(lines_with(first, R"("kind":"validation")").size(), kNumSteps / 2);
  EXPECT_EQ(train("second", ""), first);
  EXPECT_NE(train("third", "run.seed=8"), first);
}

TEST_P(Rerun, WhatIsShownOfARunDoesNotChangeIt) {
  const std::vector<std::string> plain = lines_with(train("plain", ""), R"("kind":"train")");
  const std::vector<std::string> without = train("without", "train.eval_interval=0");
  EXPECT_EQ(without, plain);

  const std::vector<std::string> often =
      train("often", "train.eval_interval=1 train.eval_batches=1 train.log_interval=5");
  EXPECT_EQ(lines_with(often, R"("kind":"validation")").size(), kNumSteps);
  // Steps 1, 5, 10 and the last.
  EXPECT_EQ(lines_with(often, R"("kind":"train")"),
            (std::vector<std::string>{plain.at(0), plain.at(4), plain.at(9), plain.at(11)}));
}

INSTANTIATE_TEST_SUITE_P(On, Rerun,
                         ::testing::Values(Layout{"OneRankWithTwoThreads", 1, 2, 1},
                                           Layout{"TwoTensorRanks", 2, 1, 2},
                                           Layout{"TwoDataRanks", 2, 1, 1},
                                           Layout{"TwoDataAndTwoTensorRanks", 4, 1, 2},
                                           Layout{"FourDataRanks", 4, 1, 1}),
                         name_of);

// The best of several starts: another job on this machine can slow any of them down, and nothing
// can make one faster than it is. On a machine that is slow by itself, a second is what mpirun
// takes for eight starts of nothing.
TEST(StartUp, TakesLessThanASecondToTheEndOfTheFirstStepOnTwoRanks) {
  using std::filesystem::file_time_type;
  constexpr int kMaxTries = 10;
  const Scene scene;
  double best = std::numeric_limits<double>::max();  // seconds
  double best_of_nothing = best;
  for (int i = 0; i < kMaxTries; ++i) {
    const auto start = file_time_type::clock::now();
    const Ended ended = scene.run(Scene::on_ranks(
        2,
        Scene::train(fmt::format("--set run.name=run{} train.steps=1 train.eval_interval=0", i))));
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    // Its only step ended when this file was written.
    const auto end = last_write_time(scene.path(fmt::format("runs/run{}/metrics.jsonl", i)));
    best = std::min(best, std::chrono::duration<double>(end - start).count());
    if (best < 1.0) return;
    best_of_nothing = std::min(best_of_nothing, scene.run(Scene::on_ranks(2, "true")).seconds);
  }
  EXPECT_LT(best, 8.0 * best_of_nothing);
}

}  // namespace
}  // namespace redspine::testing
