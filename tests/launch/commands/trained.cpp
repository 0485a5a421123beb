#include "tests/launch/commands/trained.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

constexpr const char* kConfig = R"(
run: {name: run, output_dir: DIR}
model: {num_layers: 2, hidden_size: 32, num_heads: 4, vocab_size: 257, max_sequence_length: 32}
data:
  train: [{path: DIR/tokens}]
  validation: [{path: DIR/tokens}]
batch: {sequence_length: 24, global_batch_size: 8, micro_batch_size: 8}
optimizer: {learning_rate: 1e-2}
schedule: {warmup_steps: 0}
train: {steps: 120, eval_interval: 60}
checkpoint: {interval: 60}
)";

std::unique_ptr<Folder> folder;

class Training : public ::testing::Environment {
  void SetUp() override {
    folder = std::make_unique<Folder>();
    std::string text;
    for (int i = 0; i < kNumDocuments; ++i) {
      text += "The square of " + std::to_string(i) + " is no king.\n\n";
    }
    folder->write("text", text);
    folder->write("run.yaml", kConfig);
    const Result made = redspine("tokenize --document-separator '' " + trained("text") +
                                 " --output " + trained("tokens"));
    ASSERT_EQ(made.exit_code, 0) << made.output;
    const Result run = redspine("train --config " + trained("run.yaml"));
    ASSERT_EQ(run.exit_code, 0) << run.output;
    const std::string checkpoints = trained("run/checkpoints/");
    std::filesystem::rename(checkpoints + "step_00000060", trained("first"));
    std::filesystem::rename(checkpoints + "step_00000120", trained("last"));
    std::filesystem::rename(trained("run/metrics.jsonl"), trained("metrics.jsonl"));
  }
  void TearDown() override { folder.reset(); }
};

[[maybe_unused]] const ::testing::Environment* const kTraining =
    ::testing::AddGlobalTestEnvironment(new Training);

}  // namespace

std::string trained(const std::string& name) { return folder->path(name); }

std::string fresh(const std::string& name) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string path = trained(std::string(test->name()) + "_" + name);
  std::filesystem::remove_all(path);
  return path;
}

}  // namespace redspine::testing
