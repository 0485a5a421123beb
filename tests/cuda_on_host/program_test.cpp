// The whole program with device: cuda, on one and several ranks, as a shell starts it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

constexpr const char* kConfig = R"(
run: {name: NAME, output_dir: DIR/runs}
model: {num_layers: 2, hidden_size: 32, num_heads: 4, vocab_size: 257, max_sequence_length: 16,
  dropout: 0.1}
data:
  train: [{path: DIR/tokens}]
batch: {sequence_length: 16, global_batch_size: 8, micro_batch_size: 2}
optimizer: {learning_rate: 3.0e-3}
schedule: {warmup_steps: 0}
train: {steps: 5}
)";

struct Job {
  int num_ranks = 1;
  std::string settings{};
  std::string environment{};
};

class ProgramOnHost : public ::testing::Test {
 protected:
  ProgramOnHost() { folder_.write("tiny.yaml", kConfig); }

  Result train(const Job& job, const std::string& name) const {
    return shell(fmt::format("{} {} {} {} train --config {} --set run.name={} {}", job.environment,
                             REDSPINE_MPIRUN, job.num_ranks, REDSPINE_BINARY,
                             folder_.path("tiny.yaml"), name, job.settings));
  }

  // The loss and the gradient's norm of every step.
  std::vector<double> curve(const Job& job, const std::string& name) const {
    const Result result = train(job, name);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    std::vector<double> values;
    std::ifstream metrics(folder_.path("runs/" + name + "/metrics.jsonl"));
    for (std::string line; std::getline(metrics, line);) {
      const auto entry = nlohmann::json::parse(line);
      if (entry["kind"] != "train") continue;
      values.push_back(entry["loss"]);
      values.push_back(entry["grad_norm"]);
    }
    EXPECT_EQ(values.size(), 10U) << result.output;
    return values;
  }

  static void expect_near(const std::vector<double>& values, const std::vector<double>& expected,
                          double relative) {
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], expected[i], relative * std::abs(expected[i])) << "value " << i;
    }
  }

  TinyRun folder_;
};

TEST_F(ProgramOnHost, TrainsAsTheCpuDoesOnEveryNumberOfRanksByNcclAndByMpi) {
  const std::vector<double> expected = curve({.settings = "run.device=cpu"}, "cpu");
  for (const Job& job : {
           Job{1, "run.device=cuda", ""},
           Job{2, "run.device=cuda run.collectives=nccl", "REDSPINE_ON_HOST_DEVICES=4"},
           Job{2, "run.device=cuda run.collectives=mpi parallel.tensor=2", ""},
           Job{4, "run.device=cuda parallel.tensor=2", "REDSPINE_ON_HOST_DEVICES=4"},
           Job{4, "run.device=cuda parallel.tensor=2", ""},
       }) {
    SCOPED_TRACE(fmt::format("{} ranks, {} {}", job.num_ranks, job.settings, job.environment));
    const std::string name = fmt::format("cuda_{}_{}", job.num_ranks,
                                         std::hash<std::string>{}(job.settings + job.environment));
    expect_near(curve(job, name), expected, 1e-4);
  }
}

TEST_F(ProgramOnHost, NoOrderOfThreadsBlocksAndStreamsChangesABit) {
  const std::string settings = "run.device=cuda parallel.tensor=2";
  const std::vector<double> expected =
      curve({2, settings, "REDSPINE_ON_HOST_DEVICES=2 REDSPINE_ON_HOST_SEED=1"}, "seed_1");
  for (int seed = 2; seed <= 4; ++seed) {
    const std::string environment =
        fmt::format("REDSPINE_ON_HOST_DEVICES=2 REDSPINE_ON_HOST_SEED={}", seed);
    EXPECT_EQ(curve({2, settings, environment}, fmt::format("seed_{}", seed)), expected);
  }
}

TEST_F(ProgramOnHost, Bf16FollowsFp32WithinAPercent) {
  const std::vector<double> exact = curve({.settings = "run.device=cuda"}, "fp32");
  const std::vector<double> narrow =
      curve({.settings = "run.device=cuda run.precision=bf16"}, "bf16");
  EXPECT_NE(narrow, exact);
  for (std::size_t i = 0; i < exact.size(); i += 2) {
    EXPECT_NEAR(narrow[i], exact[i], 0.01 * exact[i]) << "step " << i / 2 + 1;
  }
}

TEST_F(ProgramOnHost, AHundredLayersTrainOnTwoRanksAsOnTheCpu) {
  const std::string settings =
      "model.num_layers=100 model.hidden_size=16 model.num_heads=2 batch.global_batch_size=2 "
      "batch.micro_batch_size=1 batch.sequence_length=8";
  const std::vector<double> expected = curve({.settings = settings + " run.device=cpu"}, "cpu");
  for (const char* layout : {"parallel.tensor=1", "parallel.tensor=2"}) {
    SCOPED_TRACE(layout);
    const std::string on_gpus = fmt::format("{} run.device=cuda {}", settings, layout);
    expect_near(curve({2, on_gpus, "REDSPINE_ON_HOST_DEVICES=2"}, layout), expected, 1e-4);
  }
}

TEST_F(ProgramOnHost, NcclIsRefusedWhereRanksShareADevice) {
  const Result result = train({2, "run.device=cuda run.collectives=nccl", ""}, "refused");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "run.collectives: is nccl, but ranks 0 and 1 share the GPU"), 1)
      << result.output;
}

TEST_F(ProgramOnHost, WithoutADeviceOneLineSaysSo) {
  const Result result = train({2, "run.device=cuda", "REDSPINE_ON_HOST_DEVICES=0"}, "none");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "run.device: "), 1) << result.output;
  EXPECT_EQ(count(result.output, "[rank "), 1) << result.output;
}

}  // namespace
}  // namespace redspine::testing
