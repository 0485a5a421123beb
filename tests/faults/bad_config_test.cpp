// Problems on the command line and in the configuration.

#include <gtest/gtest.h>

#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

std::function<void(const Scene&)> edit(const char* part, const char* by) {
  return [=](const Scene& scene) { scene.edit(part, by); };
}

/// More sections for the configuration, which has 21 lines.
std::function<void(const Scene&)> append(const char* text) {
  return [=](const Scene& scene) { scene.write("config.yaml", scene.read("config.yaml") + text); };
}

void nothing(const Scene& /*scene*/) {}

constexpr const char* kWhole = "; legal: a whole number in digits alone, like 1000*";
constexpr const char* kNumber = "; legal: a finite number, like 0.1 or 1e-4, without quotes";

const std::vector<BadCase>& problems_of_the_text() {
  static const std::vector<BadCase> kAll = {
      {.name = "UnknownKey",
       .make = edit("  num_layers: 2", "  num_layers: 2\n  num_layer: 2"),
       .lines = {"config.yaml:7:3: model.num_layer: unknown key; nearest: model.num_layers; "
                 "legal here: family, num_layers, *"},
       .ranks = {1, 2, 4}},
      {.name = "UnknownSection",
       .make = append("modle: {num_layers: 2}\n"),
       .lines = {"config.yaml:22:1: modle: unknown key; nearest: model; legal here: run, *"}},
      {.name = "KeyOfAnotherSection",
       .make = edit("  steps: 4", "  steps: 4\n  seed: 3"),
       .lines = {"config.yaml:21:3: train.seed: unknown key; nearest: run.seed; *"}},
      {.name = "DuplicateKey",
       .make = edit("  seed: 7", "  seed: 7\n  seed: 7"),
       .lines = {"config.yaml:5:3: run.seed: duplicate key; first given at config.yaml:4:3"},
       .ranks = {1, 2, 4}},
      {.name = "DuplicateSection",
       .make = append("train: {steps: 5}\n"),
       .lines = {"config.yaml:22:1: train: duplicate key; first given at config.yaml:19:1"}},
      {.name = "WordForAWholeNumber",
       .make = edit("num_layers: 2", "num_layers: two"),
       .lines = {std::string("config.yaml:6:15: model.num_layers: read the text \"two\"") + kWhole},
       .ranks = {1, 2, 4}},
      {.name = "QuotedNumber",
       .make = edit("num_layers: 2", "num_layers: \"2\""),
       .lines = {std::string("config.yaml:6:15: model.num_layers: read the quoted text \"2\"") +
                 kWhole}},
      {.name = "FractionForAWholeNumber",
       .make = edit("steps: 4", "steps: 4.5"),
       .lines = {std::string("config.yaml:20:10: train.steps: read the number 4.5") + kWhole}},
      {.name = "WholeNumberBeyond64Bits",
       .make = edit("seed: 7", "seed: 99999999999999999999"),
       .lines = {"config.yaml:4:9: run.seed: read the number 99999999999999999999: outside 0 to "
                 "18446744073709551615; *"}},
      {.name = "WordForANumber",
       .make = append("optimizer: {learning_rate: fast}\n"),
       .lines = {std::string("config.yaml:22:28: optimizer.learning_rate: read the text \"fast\"") +
                 kNumber}},
      {.name = "ListForANumber",
       .make = append("optimizer: {beta1: [0.9]}\n"),
       .lines = {std::string("config.yaml:22:20: optimizer.beta1: read a list") + kNumber}},
      {.name = "NumberForAName",
       .make = edit("name: run", "name: 12"),
       .lines = {"config.yaml:2:9: run.name: read the number 12: as text it is written \"12\"; *"}},
      {.name = "WordForAFlag",
       .make = append("parallel: {sequence: \"no\"}\n"),
       .lines = {"config.yaml:22:22: parallel.sequence: read the quoted text \"no\"; legal: true "
                 "or false, without quotes"}},
      {.name = "UnknownChoice",
       .make = append("schedule: {kind: cosin}\n"),
       .lines = {"config.yaml:22:18: schedule.kind: read the text \"cosin\"; legal: constant, "
                 "linear, cosine, wsd"}},
      {.name = "NumberForASection",
       .make = append("parallel: 2\n"),
       .lines = {"config.yaml:22:11: parallel: read the number 2; legal: a map of the keys tensor, "
                 "*"}},
      {.name = "TextForAList",
       .make = edit("train: [{path: train.u16}]", "train: train.u16"),
       .lines = {"config.yaml:13:10: data.train: read the text \"train.u16\"; legal: a list of "
                 "files, *"}},
      {.name = "KeyWithoutAValue",
       .make = edit("num_layers: 2", "num_layers:"),
       .lines = {std::string("config.yaml:6:3: model.num_layers: read no value") + kWhole}},
      {.name = "MissingKey",
       .make = edit("  steps: 4\n", ""),
       .lines = {std::string("config.yaml:20:3: train.steps: missing") + kWhole}},
      {.name = "NoYaml",
       .make = edit("  seed: 7", "  seed: {7"),
       .lines = {"config.yaml:4:10: no valid YAML: *"}},
      {.name = "TabInAnIndentation",
       .make = edit("  seed: 7", "\tseed: 7"),
       .lines = {"config.yaml:4:1: a tab indents the line; legal: spaces"}},
      {.name = "KeyThatIsFarFromAll",
       .make = edit("  seed: 7", "  hang_seconds: 7"),
       .lines = {"config.yaml:4:3: run.hang_seconds: unknown key; legal here: name, *"}},
      {.name = "EmptyFile",
       .make = [](const Scene& scene) { scene.write("config.yaml", ""); },
       .lines = {"config.yaml: read nothing: the file is empty; legal: a map of the sections *"}},
      {.name = "MissingFile",
       .make = [](const Scene& scene) { std::filesystem::remove(scene.path("config.yaml")); },
       .lines = {"config.yaml: cannot read the configuration: No such file or directory"},
       .ranks = {1, 2, 4}},
  };
  return kAll;
}

const std::vector<BadCase>& problems_of_the_values() {
  static const std::vector<BadCase> kAll = {
      {.name = "HeadsNotDivisibleByTensor",
       .make = edit("num_heads: 4\n  num_kv_heads: 4\n", "num_heads: 1\n"),
       .lines = {"--set parallel.tensor=2: parallel.tensor: is 2, which does not divide "
                 "model.num_heads (1): a head is never split"},
       .words = "--set parallel.tensor=2",
       .ranks = {2, 4}},
      {.name = "HeadsNotDividingTheHiddenSize",
       .make = edit("num_heads: 4\n  num_kv_heads: 4\n", "num_heads: 5\n"),
       .lines = {"config.yaml:8:14: model.num_heads: is 5, which does not divide "
                 "model.hidden_size (32)"}},
      {.name = "KvHeadsNotDividingHeads",
       .make = edit("num_kv_heads: 4", "num_kv_heads: 3"),
       .lines = {"config.yaml:9:17: model.num_kv_heads: is 3, which does not divide "
                 "model.num_heads (4)"},
       .ranks = {1, 2, 4}},
      {.name = "WorldNotDivisibleByTensor",
       .make = append("parallel: {tensor: 4}\n"),
       .lines = {"config.yaml:22:20: parallel.tensor: is 4, which does not divide the 2 ranks of "
                 "this job; what fits 2 ranks and 4 heads: 1, 2"},
       .ranks = {2}},
      {.name = "ThreeRanksForTwoTensorRanks",
       .make = append("parallel: {tensor: 2}\n"),
       .lines = {"config.yaml:22:20: parallel.tensor: is 2, which does not divide the 3 ranks of "
                 "this job; what fits 3 ranks and 4 heads: 1"},
       .ranks = {3}},
      {.name = "SequenceLongerThanTheModelAllows",
       .make = edit("  micro_batch_size: 1", "  micro_batch_size: 1\n  sequence_length: 64"),
       .lines = {"config.yaml:19:20: batch.sequence_length: is 64, longer than "
                 "model.max_sequence_length (32)"},
       .ranks = {1, 2, 4}},
      {.name = "GlobalBatchNotDivisible",
       .make = edit("micro_batch_size: 1", "micro_batch_size: 3"),
       .lines = {"config.yaml:17:22: batch.global_batch_size: is 8, which is no multiple of 6 "
                 "sequences (2 data ranks x batch.micro_batch_size 3); nearest: 6 and 12"},
       .ranks = {2}},
      {.name = "GlobalBatchSmallerThanTheRanks",
       .make = edit("global_batch_size: 8", "global_batch_size: 2"),
       .lines = {"config.yaml:17:22: batch.global_batch_size: is 2, which is no multiple of 4 "
                 "sequences (4 data ranks x batch.micro_batch_size 1); nearest: 4"},
       .ranks = {4}},
      {.name = "NegativeSteps",
       .make = edit("steps: 4", "steps: -4"),
       .lines = {"config.yaml:20:10: train.steps: is -4; legal: 1 to 2147483647"}},
      {.name = "EvaluationWithoutData",
       .make = edit("[{path: validation.u16}]", "[]"),
       .lines = {"config.yaml:21:18: train.eval_interval: is 2, but data.validation lists no "
                 "files; legal without: 0"}},
      {.name = "CudaInABuildWithoutIt",
       .make = edit("seed: 7", "device: cuda"),
       .lines = {"config.yaml:4:11: run.device: is cuda, but the CUDA backend is not in this "
                 "build; legal here: auto, cpu"}},
      {.name = "Bf16OnTheCpu",
       .make = edit("seed: 7", "precision: bf16"),
       .lines = {"config.yaml:4:14: run.precision: is bf16, which the CPU backend does not "
                 "compute in; legal here: fp32"}},
      {.name = "RunNameThatIsAPath",
       .make = edit("name: run", "name: a/b"),
       .lines = {"config.yaml:2:9: run.name: is \"a/b\"; legal: the name of one folder"}},
      {.name = "RopeKeysUnderLearnedPositions",
       .make = edit("num_layers: 2", "num_layers: 2\n  rope: {scaling: yarn, factor: 2}"),
       .lines =
           {"config.yaml:7:19: model.rope.scaling: is given, but model.position is learned, so "
            "it would do nothing; legal: none, or model.position: rope",
            "config.yaml:7:33: model.rope.factor: is 2 but model.position is learned, so it "
            "would do nothing; legal: 1, or model.position: rope"}},
      {.name = "RopeKeysOfAnotherScaling",
       .make = edit("num_layers: 2",
                    "num_layers: 2\n  position: rope\n  rope: {scaling: llama3, factor: 2, "
                    "beta_fast: 16, attention_factor: 1.5}"),
       .lines = {"config.yaml:8:49: model.rope.beta_fast: is 16 but model.rope.scaling is llama3, "
                 "so it would do nothing; legal: 32, or a scaling of yarn",
                 "config.yaml:8:71: model.rope.attention_factor: is 1.5 but model.rope.scaling is "
                 "llama3, so it would do nothing; legal: none, or a scaling of yarn"}},
      {.name = "RunNameThatIsTooLong",
       .make =
           [](const Scene& scene) { scene.edit("name: run", "name: " + std::string(300, 'x')); },
       .lines =
           {"config.yaml:2:9: run.name: is \"xxx*[... 236 bytes ...]xxx*\", 300 bytes; legal: the "
            "name of one folder, of up to 255 bytes"}},
      {.name = "AllProblemsAtOnce",
       .make =
           [](const Scene& scene) {
             scene.edit("seed: 7", "sead: 7");
             scene.edit("num_kv_heads: 4", "num_kv_heads: 3");
             scene.edit("steps: 4", "steps: four");
           },
       .lines = {"config.yaml:4:3: run.sead: unknown key; nearest: run.seed; *",
                 std::string("config.yaml:20:10: train.steps: read the text \"four\"") + kWhole,
                 "--set model.dropout=2: model.dropout: is 2; legal: 0 (off) to below 1",
                 "config.yaml:9:17: model.num_kv_heads: is 3, which does not divide "
                 "model.num_heads (4)"},
       .words = "--set model.dropout=2",
       .ranks = {1, 2, 4}},
  };
  return kAll;
}

const std::vector<BadCase>& problems_on_the_command_line() {
  static const std::vector<BadCase> kAll = {
      {.name = "SetOfAnUnknownKey",
       .make = nothing,
       .lines = {"--set model.num_layres=3: model.num_layres: unknown key; nearest: "
                 "model.num_layers; legal here: family, *"},
       .words = "--set model.num_layres=3"},
      {.name = "SetWithAWrongType",
       .make = nothing,
       .lines = {std::string("--set model.num_layers=x: model.num_layers: read the text \"x\"") +
                 kWhole},
       .words = "--set model.num_layers=x"},
      {.name = "SetWithoutAValue",
       .make = nothing,
       .lines = {"--set model.num_layers: legal: KEY=VALUE, like model.num_layers=24"},
       .words = "--set model.num_layers"},
      {.name = "SetWithoutAKey",
       .make = nothing,
       .lines = {"--set =3: legal: KEY=VALUE, like model.num_layers=24"},
       .words = "--set =3"},
      {.name = "SetOfNothing",
       .make = nothing,
       .lines = {"the required argument for option '--set' is missing"},
       .words = "--set"},
      {.name = "UnknownOption",
       .make = nothing,
       .lines = {"--sett: unknown option; nearest: --set"},
       .words = "--sett train.steps=3",
       .ranks = {1, 2, 4}},
      {.name = "StrayWord",
       .make = nothing,
       .lines = {"train.steps=3: belongs to no option"},
       .words = "train.steps=3"},
  };
  return kAll;
}

class BadConfig : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadConfig, IsToldByOneRankAndEndsAllWithNothingTouched) { expect_rejected(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Text, BadConfig, ::testing::ValuesIn(problems_of_the_text()), name_of);
INSTANTIATE_TEST_SUITE_P(Values, BadConfig, ::testing::ValuesIn(problems_of_the_values()), name_of);
INSTANTIATE_TEST_SUITE_P(CommandLine, BadConfig,
                         ::testing::ValuesIn(problems_on_the_command_line()), name_of);

}  // namespace
}  // namespace redspine::testing
