// A gradient that is not finite is a decision of all ranks together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tensor/error.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_case.h"
#include "trainer/training_run.h"

namespace redspine::testing {
namespace {

/// Whether the bits are the same; a NaN is not equal to itself.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// The parameter whose name ends so.
TensorView value_of(RunCase& run, const std::string& name_end) {
  for (const Parameter& parameter : run.trainer.model().parameters().parameters()) {
    if (parameter.spec.name.ends_with(name_end)) return parameter.value;
  }
  throw std::runtime_error("no parameter " + name_end);
}

void multiply(const TensorView& value, float factor) {
  for (std::int64_t i = 0; i < value.count(); ++i) value.data<float>()[i] *= factor;
}

void set_first(const TensorView& value, float to) { value.data<float>()[0] = to; }

class NonFinite : public ::testing::Test {
 protected:
  RunFiles files;
  Config config = run_config(files, Family::llama);
};

TEST_F(NonFinite, AStepIsSkippedOnAllRanksWhicheverHasTheBadValue) {
  for (int bad_rank = 0; bad_rank < world().size(); ++bad_rank) {
    RunCase run(config);
    const StepReport good = run.trainer.train_step();
    EXPECT_EQ(good.applied, true);

    const TensorView weight = value_of(run, "blocks.1.mlp.up.weight");
    const float kept = weight.data<float>()[0];
    const bool is_bad = world().rank() == bad_rank;
    if (is_bad) set_first(weight, std::numeric_limits<float>::quiet_NaN());
    const std::vector<float> before = run.parameters();
    const StepReport bad = run.trainer.train_step();
    EXPECT_EQ(bad.applied, false) << "bad rank " << bad_rank;
    EXPECT_EQ(std::isfinite(bad.loss) && std::isfinite(bad.gradient_norm), false);
    EXPECT_EQ(same_bits(run.parameters(), before), true) << "bad rank " << bad_rank;
    EXPECT_EQ(bad.step, 2);
    EXPECT_EQ(bad.samples, 16);  // the batch is used up

    // Nothing of the bad step stays behind: the next one is applied and finite.
    if (is_bad) set_first(weight, kept);
    const StepReport next = run.trainer.train_step();
    EXPECT_EQ(next.applied, true);
    EXPECT_EQ(std::isfinite(next.loss) && std::isfinite(next.gradient_norm), true);
  }
}

// Logits of 1e37 make a loss that is large and finite. On a stream of 1e-8 the first norm
// multiplies by 1e6, and so does its backward pass: the gradient of the embedding overflows.
TEST_F(NonFinite, AStepIsSkippedWhereTheLossIsFiniteAndTheGradientIsNot) {
  config.model.norm_epsilon = 1e-12;
  config.model.tie_embeddings = false;
  RunCase run(config);
  multiply(value_of(run, "embedding.weight"), 1e-6F);
  multiply(value_of(run, "head.weight"), 1e38F);
  const std::vector<float> before = run.parameters();
  const StepReport report = run.trainer.train_step();
  EXPECT_EQ(std::isfinite(report.loss), true);
  EXPECT_EQ(std::isfinite(report.gradient_norm), false);
  EXPECT_EQ(report.applied, false);
  EXPECT_EQ(same_bits(run.parameters(), before), true);
}

TEST_F(NonFinite, BiasCorrectionCountsUpdatesNotSteps) {
  config.schedule = {.kind = ScheduleKind::constant, .warmup_steps = 0, .decay_steps = 6};
  config.optimizer.weight_decay = 0.0;
  RunCase run(config);
  const TensorView weight = value_of(run, "blocks.1.mlp.up.weight");
  const float kept = weight.data<float>()[0];
  set_first(weight, std::numeric_limits<float>::quiet_NaN());
  run.trainer.train_step();
  set_first(weight, kept);
  const std::vector<float> before = from_device(*run.device, weight);
  run.trainer.train_step();
  const std::vector<float> after = from_device(*run.device, weight);
  // The first update moves an element whose gradient is well above epsilon by the learning rate.
  double longest = 0.0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    longest = std::max(longest, std::abs(static_cast<double>(after[i] - before[i])));
  }
  EXPECT_NEAR(longest / config.optimizer.learning_rate, 1.0, 0.01);
}

TEST_F(NonFinite, AStopAmidSkippedStepsGoesBackToTheLastGoodCheckpoint) {
  const std::string folder = run_directory(config.run) + "/checkpoints";
  const auto path_of = [&](std::int64_t step) { return CheckpointStore(folder, "").path_of(step); };
  if (world().rank() == 0) {
    for (const std::int64_t step : {1, 2}) std::filesystem::create_directories(path_of(step));
  }
  world().barrier();
  // Step 2 was the last that was applied, and saved; nothing is known of what it made.
  RunCase run(config, world(), {.step = 5, .num_updates = 2, .num_skipped_in_a_row = 3});
  const StopSignals signals;
  if (world().rank() == world().size() - 1) raise(SIGTERM);
  EXPECT_EQ(run_to_end(run), RunEnd::stopped);
  EXPECT_EQ(run.trainer.step(), 5);
  world().barrier();
  EXPECT_TRUE(std::filesystem::exists(path_of(1)));
  EXPECT_FALSE(std::filesystem::exists(path_of(2)));
  EXPECT_TRUE(std::filesystem::exists(path_of(2) + ".aside-1"));
  EXPECT_FALSE(std::filesystem::exists(path_of(5)));
}

TEST_F(NonFinite, ARunStopsAfterTenSkippedStepsInARow) {
  config.train.steps = 50;
  std::filesystem::create_directories(run_directory(config.run));
  RunCase run(config);
  // On all replicas of one tensor rank, as these are compared.
  const ProcessGroup& tensor = run.trainer.mesh().group(Axis::tensor);
  if (tensor.rank() == tensor.size() - 1) {
    set_first(value_of(run, "blocks.0.mlp.up.weight"), std::numeric_limits<float>::quiet_NaN());
  }
  std::string message;
  try {
    run_to_end(run);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("10 steps in a row"), std::string::npos) << message;
  EXPECT_EQ(run.trainer.step(), 10);
  if (world().rank() != 0) return;
  // Each skipped step has its line and an event.
  std::ifstream file(metrics_path(config.run));
  int step = 0;
  for (std::string line; std::getline(file, line);) {
    const auto training = nlohmann::json::parse(line);
    ++step;
    EXPECT_EQ(training.at("kind"), "train");
    EXPECT_EQ(training.at("step"), step);
    EXPECT_EQ(training.at("applied"), false);
    std::getline(file, line);
    EXPECT_EQ(nlohmann::json::parse(line),
              nlohmann::json({{"kind", "event"}, {"step", step}, {"event", "skipped_step"}}));
  }
  EXPECT_EQ(step, 10);
}

}  // namespace
}  // namespace redspine::testing
