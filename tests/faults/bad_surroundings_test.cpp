// What a run finds around its configuration and data: where its output goes, and the checkpoint,
// weights and tokenizer that it needs.

#include <gtest/gtest.h>

#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

std::function<void(const Scene&)> edit(const char* part, const char* by) {
  return [=](const Scene& scene) { scene.edit(part, by); };
}

void nothing(const Scene& /*scene*/) {}

const std::vector<BadCase>& problems_of_the_output() {
  static const std::vector<BadCase> kAll = {
      {.name = "OutputBelowAFile",
       .make = edit("output_dir: runs", "output_dir: train.u16"),
       .lines = {"config.yaml:3:15: run.output_dir: cannot write train.u16/run/config.yaml: Not a "
                 "directory"},
       .ranks = {1, 2, 4}},
      {.name = "OutputWhereNobodyMayWrite",  // not even root
       .make = edit("output_dir: runs", "output_dir: /proc"),
       .lines = {"config.yaml:3:15: run.output_dir: cannot write /proc*: *"}},
      {.name = "ConfigThatCannotBeReplaced",
       .make =
           [](const Scene& scene) {
             create_directories(scene.path("runs/run/config.yaml"));
             scene.write("runs/run/metrics.jsonl", "of an earlier run");
           },
       .lines = {"config.yaml:3:15: run.output_dir: cannot write runs/run/config.yaml: Is a "
                 "directory"}},
      {.name = "DirectoryThatIsAFile",
       .make =
           [](const Scene& scene) {
             create_directories(scene.path("runs"));
             scene.write("runs/run", "");
           },
       .lines = {"config.yaml:3:15: run.output_dir: cannot write runs/run/config.yaml: Not a "
                 "directory"}},
      {.name = "DirectoryThatCannotBeSearched",  // not even by root
       .make =
           [](const Scene& scene) {
             create_directories(scene.path("runs"));
             create_symlink("run", scene.path("runs/run"));
           },
       .lines = {"config.yaml:3:15: run.output_dir: cannot write runs/run/config.yaml: Too many "
                 "levels of symbolic links"}},
      {.name = "CheckpointsThatCannotBeSearched",
       .make =
           [](const Scene& scene) {
             create_directories(scene.path("runs/run"));
             create_symlink("checkpoints", scene.path("runs/run/checkpoints"));
           },
       .lines = {"config.yaml:3:15: run.output_dir: cannot write runs/run/checkpoints: Too many "
                 "levels of symbolic links"}},
      {.name = "CheckpointsThatAreAFile",
       .make =
           [](const Scene& scene) {
             create_directories(scene.path("runs/run"));
             scene.write("runs/run/checkpoints", "");
           },
       .lines = {"config.yaml:3:15: run.output_dir: cannot write runs/run/checkpoints: Not a "
                 "directory"}},
      {.name = "MetricsThatCannotBeReplaced",
       .make = [](const Scene& scene) { create_directories(scene.path("runs/run/metrics.jsonl")); },
       .lines = {"config.yaml:3:15: run.output_dir: cannot write runs/run/metrics.jsonl: Is a "
                 "directory"}},
  };
  return kAll;
}

/// What a run needs besides its configuration and data; `words` come first on the command line.
std::vector<BadCase> problems_of_needs(const std::string& words) {
  const auto config_json = [](const Scene& scene) {
    create_directory(scene.path("theirs"));
    scene.write("theirs/model.safetensors", "");
    scene.write("theirs/config.json",
                R"({"model_type": "gpt2", "vocab_size": 257, "n_positions": 32, "n_embd": 32,
                    "n_layer": 3, "n_head": 4, "n_inner": 96})");
  };
  return {
      {.name = "CheckpointThatIsNotThere",
       .make = nothing,
       .lines = {"--set checkpoint.resume=nope: checkpoint.resume: nope: does not exist"},
       .words = words + "--set checkpoint.resume=nope"},
      {.name = "WeightsThatAreNotThere",
       .make = nothing,
       .lines = {"--set checkpoint.initialize_from=no/pe: checkpoint.initialize_from: no/pe: does "
                 "not exist; a model of the Hugging Face hub is not fetched from here: *"},
       .words = words + "--set checkpoint.initialize_from=no/pe"},
      {.name = "WeightsOfAnotherModel",
       .make = config_json,
       .lines = {"config.yaml:6:15: model.num_layers: is 2, but theirs/config.json says 3: *",
                 "model.ffn_size (from model.hidden_size): is 128, but theirs/config.json says "
                 "96: *"},
       .words = words + "--set checkpoint.initialize_from=theirs"},
      {.name = "TokenizerThatIsNotThere",
       .make = nothing,
       .lines = {"--set data.tokenizer=nope.json: data.tokenizer: nope.json: cannot be opened: No "
                 "such file or directory"},
       .words = words + "--set data.tokenizer=nope.json"},
      {.name = "TokenizerWithMoreIdsThanTheModel",
       .make = edit("vocab_size: 257", "vocab_size: 256"),
       .lines = {"--set data.tokenizer=bytes: data.tokenizer: bytes: has ids up to 256; legal for "
                 "model.vocab_size 256: up to 255"},
       .words = words + "--set data.tokenizer=bytes"},
      {.name = "OutputThatCannotBeMade",
       .make = edit("output_dir: runs", "output_dir: train.u16"),
       .lines = {"config.yaml:3:15: run.output_dir: cannot write train.u16/run/config.yaml: Not a "
                 "directory"},
       .words = words},
  };
}

class BadSurroundings : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadSurroundings, AreToldByOneRankAndEndAllWithNothingTouched) {
  expect_rejected(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Needs, BadSurroundings, ::testing::ValuesIn(problems_of_needs("")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(NeedsOfADryRun, BadSurroundings,
                         ::testing::ValuesIn(problems_of_needs("--dry-run ")), name_of);
INSTANTIATE_TEST_SUITE_P(Output, BadSurroundings, ::testing::ValuesIn(problems_of_the_output()),
                         name_of);

}  // namespace
}  // namespace redspine::testing
