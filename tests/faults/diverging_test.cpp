// A run whose weights go beyond repair: what was good stays, and is where the next start goes on.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/checkpoint_scene.h"
#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

// Grows the weights by a factor per step until the loss is not finite any more.
constexpr const char* kDiverging =
    "optimizer.weight_decay=1e4 schedule.kind=constant schedule.warmup_steps=0 "
    "optimizer.learning_rate=6e-4 train.eval_interval=0";

struct DivergingCase {
  const char* name;
  int num_ranks;
  const char* settings;
};

class Diverging : public ::testing::TestWithParam<DivergingCase> {
 protected:
  Start start(const std::string& settings) const {
    return {.num_ranks = GetParam().num_ranks,
            .settings = fmt::format("{} {} {}", kDiverging, GetParam().settings, settings)};
  }
  /// Steps that changed the weights.
  std::int64_t num_applied() const {
    const std::vector<std::string> events = run_.events();
    const auto skipped = [](const std::string& event) {
      return event.find("skipped_step") != std::string::npos;
    };
    const auto first = std::find_if(events.begin(), events.end(), skipped);
    if (first == events.end()) return 0;
    return std::stoll(first->substr(first->find(R"("step":)") + 7)) - 1;
  }
  /// The newest checkpoint in its place passes, and a step was applied after it.
  void expect_good_one_left() const {
    ASSERT_FALSE(run_.steps().empty());
    EXPECT_LT(run_.newest_step(), num_applied());
    for (const std::int64_t step : run_.steps()) {
      const Ended ended = run_.run(fmt::format("{} checkpoint verify {}", CheckpointScene::binary(),
                                               run_.checkpoint(step).string()));
      EXPECT_EQ(ended.exit_code, 0) << ended.output << ended.errors;
    }
  }

  const CheckpointScene run_;
};

TEST_P(Diverging, EndsAndLeavesTheNewestGoodCheckpointInItsPlace) {
  const Ended ended = run_.train(start("train.steps=80"));
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  const std::int64_t last_applied = num_applied();
  ASSERT_GT(last_applied, 2);
  expect_good_one_left();
  EXPECT_TRUE(matches(
      ended.errors,
      fmt::format("*the gradient was not finite in 10 steps in a row, up to step {}; the last good "
                  "checkpoint is runs/run/checkpoints/{}*",
                  last_applied + 10, step_name(run_.newest_step()))))
      << ended.errors;
  for (const std::string& name : run_.names()) {
    EXPECT_LE(name, step_name(last_applied) + ".aside-1") << "saved amid skipped steps";
  }

  // And is where the run goes on, with what is wrong put right.
  const std::int64_t good = run_.newest_step();
  Start mended = start(fmt::format("train.steps={} optimizer.learning_rate=1e-9", good + 3));
  const Ended again = run_.train(mended);
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_TRUE(matches(
      again.output, fmt::format("*resuming from runs/run/checkpoints/{} after*", step_name(good))))
      << again.output;
  EXPECT_EQ(run_.newest_step(), good + 3);
}

TEST_P(Diverging, IsNoRunThatHasHadAllItsSteps) {
  ASSERT_EQ(run_.train(start("train.steps=80")).exit_code, 1);
  const std::int64_t last_applied = num_applied();
  std::filesystem::remove_all(run_.run_folder());
  const Ended ended = run_.train(start(fmt::format("train.steps={}", last_applied + 3)));
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_TRUE(matches(ended.errors,
                      fmt::format("*not finite in 3 steps in a row, up to step {}; the last good "
                                  "checkpoint is *",
                                  last_applied + 3)))
      << ended.errors;
  expect_good_one_left();
  // The last weights are not lost.
  const std::vector<std::string> names = run_.names();
  EXPECT_EQ(std::count(names.begin(), names.end(), step_name(last_applied + 3) + ".aside-1"), 1);
}

std::string name_of(const ::testing::TestParamInfo<DivergingCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Run, Diverging,
    ::testing::Values(DivergingCase{"ThatSavesEachStep", 1, "checkpoint.keep=1"},
                      DivergingCase{"ThatSavesInTheForeground", 1,
                                    "checkpoint.interval=3 checkpoint.async=false"},
                      DivergingCase{"OnTwoRanks", 2, "checkpoint.interval=2 parallel.tensor=2"}),
    name_of);

}  // namespace
}  // namespace redspine::testing
