// What changes a training trajectory and what does not. Two ranks and more use the tensor axis too.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_case.h"
#include "trainer/training_run.h"

namespace redspine::testing {
namespace {

using Lines = std::vector<nlohmann::ordered_json>;

struct Result {
  Lines lines;                 // of metrics.jsonl, without the times; rank 0 has them
  std::vector<double> tokens;  // [training line] by its times: of how many it tells
  std::vector<float> parameters;
};

/// A whole run, as the command makes it.
Result run(const Config& config) {
  if (world().rank() == 0) std::filesystem::create_directories(run_directory(config.run));
  world().barrier();
  RunCase run_case(config);
  run_to_end(run_case);
  Result result{.lines = {}, .tokens = {}, .parameters = run_case.parameters()};
  if (world().rank() != 0) return result;
  std::ifstream file(metrics_path(config.run));
  for (std::string line; std::getline(file, line);) {
    result.lines.push_back(nlohmann::ordered_json::parse(line));
    if (result.lines.back().at("kind") == "checkpoint") {
      result.lines.pop_back();  // says nothing of the trajectory
      continue;
    }
    if (result.lines.back().at("kind") == "train") {
      result.tokens.push_back(result.lines.back().at("seconds").get<double>() *
                              result.lines.back().at("tokens_per_second").get<double>());
    }
    for (const char* time : {"seconds", "tokens_per_second", "tflops_per_rank"}) {
      result.lines.back().erase(time);
    }
  }
  return result;
}

Lines training_lines(const Lines& lines) {
  Lines training;
  for (const auto& line : lines) {
    if (line.at("kind") == "train") training.push_back(line);
  }
  return training;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) text += line.dump() + "\n";
  return text;
}

class Trajectory : public ::testing::TestWithParam<Family> {
 protected:
  Trajectory() { config.model.dropout = 0.1; }

  RunFiles files;
  Config config = run_config(files, GetParam());
};

TEST_P(Trajectory, OfTheSameCommandHasTheSameBits) {
  config.train.eval_interval = 2;
  const Result first = run(config);
  const Result second = run(config);
  EXPECT_EQ(text_of(first.lines), text_of(second.lines));
  EXPECT_EQ(first.parameters == second.parameters, true);
}

TEST_P(Trajectory, DependsOnTheSeed) {
  const Result first = run(config);
  config.run.seed += 1;
  const Result second = run(config);
  EXPECT_EQ(first.parameters == second.parameters, false);
  if (world().rank() == 0) {
    EXPECT_NE(first.lines[0].at("loss"), second.lines[0].at("loss"));
    EXPECT_NE(first.lines[0].at("batch_hash"), second.lines[0].at("batch_hash"));
  }
}

TEST_P(Trajectory, DoesNotDependOnTheEvaluationInterval) {
  const Result without = run(config);
  config.train.eval_interval = 1;
  const Result with = run(config);
  if (world().rank() == 0) {
    EXPECT_EQ(without.lines.size(), 6U);
    EXPECT_EQ(with.lines.size(), 12U);
  }
  EXPECT_EQ(text_of(training_lines(with.lines)), text_of(without.lines));
  EXPECT_EQ(without.parameters == with.parameters, true);
}

TEST_P(Trajectory, DoesNotDependOnTheLogInterval) {
  const Result all = run(config);
  config.train.log_interval = 4;
  const Result some = run(config);
  EXPECT_EQ(all.parameters == some.parameters, true);
  if (world().rank() != 0) return;
  // The first step, every fourth, and the last.
  EXPECT_EQ(text_of(some.lines), text_of({all.lines[0], all.lines[3], all.lines[5]}));
  // Times are those since the line before, as the tokens are.
  double tokens = 0.0;
  for (std::size_t i = 0; i < some.lines.size(); ++i) {
    tokens += some.tokens[i];
    EXPECT_NEAR(tokens, some.lines[i].at("tokens").get<double>(), 1e-6) << "line " << i;
  }
}

TEST_P(Trajectory, DoesNotDependOnTheMicroBatchSize) {
  config.batch.micro_batch_size = 1;
  const Result one = run(config);
  config.batch.micro_batch_size = 8 / config.num_data_ranks(world().size());
  const Result whole = run(config);
  for (std::size_t i = 0; i < one.lines.size(); ++i) {
    const auto& a = one.lines[i];
    const auto& b = whole.lines[i];
    EXPECT_NEAR(a.at("loss").get<double>() / b.at("loss").get<double>(), 1.0, 1e-5);
    EXPECT_NEAR(a.at("grad_norm").get<double>() / b.at("grad_norm").get<double>(), 1.0, 1e-5);
    EXPECT_EQ(a.at("batch_hash"), b.at("batch_hash"));
    EXPECT_EQ(a.at("tokens"), b.at("tokens"));
  }
}

TEST_P(Trajectory, LearnsAndCountsWhatItHasSeen) {
  config.train.steps = 20;
  config.schedule.decay_steps = 20;
  const Result result = run(config);
  if (world().rank() != 0) return;
  EXPECT_NEAR(result.lines.front().at("loss").get<double>(), std::log(257.0), 0.1);
  EXPECT_LT(result.lines.back().at("loss").get<double>(), std::log(257.0) - 0.1);
  for (std::size_t i = 0; i < result.lines.size(); ++i) {
    EXPECT_EQ(result.lines[i].at("step"), i + 1);
    EXPECT_EQ(result.lines[i].at("samples"), 8 * (i + 1));
    EXPECT_EQ(result.lines[i].at("tokens"), 128 * (i + 1));
    EXPECT_EQ(result.lines[i].at("applied"), true);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Trajectory, ::testing::Values(Family::gpt2, Family::llama),
                         [](const auto& family) {
                           return family.param == Family::gpt2 ? "gpt2" : "llama";
                         });

}  // namespace
}  // namespace redspine::testing
