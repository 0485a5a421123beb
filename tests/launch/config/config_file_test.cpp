#include "launch/config/config_file.h"

#include <gtest/gtest.h>

#include "tests/launch/config/parsed_config.h"

namespace redspine::testing {
namespace {

constexpr const char* kWholeNumber =
    "legal: a whole number in digits alone, like 1000 (not 1e3, not 1000.0)";

// --- What is accepted ----------------------------------------------------------------------------

TEST(ConfigFile, TheDefaultsAreThoseOfTheInterface) {
  const Config config = parse(kMinimal);
  EXPECT_EQ(config.model.num_layers, 12);
  EXPECT_EQ(config.model.ffn_size, 3072);
  EXPECT_EQ(config.model.num_kv_heads, 12);
  EXPECT_EQ(config.batch.sequence_length, 1024);
  EXPECT_EQ(config.optimizer.learning_rate, 6e-4);
  EXPECT_EQ(config.schedule.decay_steps, 10);
  EXPECT_EQ(config.train.eval_interval, 0)
      << "without validation data there is nothing to evaluate";
  EXPECT_EQ(config.run.seed, 1234U);
}

TEST(ConfigFile, EvaluationIsOnOnceThereIsValidationData) {
  const std::string text =
      "data: {train: [{path: a}], validation: [{path: b}]}\ntrain: {steps: 9}\n";
  EXPECT_EQ(parse(text).train.eval_interval, 250);
}

TEST(ConfigFile, AFamilyPresetsWhatIsNotGiven) {
  const Config config =
      parse(kMinimal + "model: {family: llama, hidden_size: 2048, num_heads: 32, bias: true}\n");
  EXPECT_EQ(config.model.position, Position::rope);
  EXPECT_EQ(config.model.norm, NormKind::rmsnorm);
  EXPECT_EQ(config.model.activation, Activation::swiglu);
  EXPECT_FALSE(config.model.tie_embeddings);
  EXPECT_TRUE(config.model.bias) << "a key that is given wins";
  EXPECT_EQ(config.model.ffn_size, 5632);
  EXPECT_EQ(config.model.num_kv_heads, 32);
}

TEST(ConfigFile, AFamilyFromASettingPresetsAsWell) {
  const Config config = parse(kMinimal, {"model.family=llama", "model.activation=gelu"});
  EXPECT_EQ(config.model.norm, NormKind::rmsnorm);
  EXPECT_EQ(config.model.activation, Activation::gelu);
}

TEST(ConfigFile, TheWarmUpIsATenthOfTheScheduleAnd700StepsAtMost) {
  EXPECT_EQ(parse(kMinimal, {"train.steps=20"}).schedule.warmup_steps, 2);
  EXPECT_EQ(parse(kMinimal, {"train.steps=5"}).schedule.warmup_steps, 0);
  EXPECT_EQ(parse(kMinimal, {"train.steps=19560"}).schedule.warmup_steps, 700);
  EXPECT_EQ(parse(kMinimal, {"schedule.decay_steps=100"}).schedule.warmup_steps, 10);
  EXPECT_EQ(parse(kMinimal, {"schedule.warmup_steps=700"}).schedule.warmup_steps, 700);
}

TEST(ConfigFile, RopeScalesFromTheModelsLengthUnlessToldOtherwise) {
  EXPECT_EQ(parse(kMinimal + "model: {max_sequence_length: 77}\n").model.rope.original_length, 77);
}

TEST(ConfigFile, AllSpellingsOfANumberAreRead) {
  const std::vector<std::pair<std::string, double>> spellings = {
      {"1e-4", 1e-4},  {"1.e-4", 1e-4}, {"1E-4", 1e-4}, {"1.0e-4", 1e-4}, {"0.0001", 1e-4},
      {"+1e-4", 1e-4}, {".5", 0.5},     {"1", 1.0},     {"2e+0", 2.0},    {"0", 0.0}};
  for (const auto& [text, value] : spellings) {
    EXPECT_EQ(parse(kMinimal, {"optimizer.learning_rate=" + text}).optimizer.learning_rate, value)
        << text;
  }
}

TEST(ConfigFile, TheLargestSeedIsRead) {
  EXPECT_EQ(parse(kMinimal + "run: {seed: 18446744073709551615}\n").run.seed,
            18446744073709551615ULL);
}

TEST(ConfigFile, AnchorsAndCommentedOutSectionsAreFine) {
  const Config config = parse(
      "data:\n  train: &files [{path: a, weight: 2}]\n  validation: *files\n"
      "train: {steps: &n 5}\nschedule: {warmup_steps: *n}\nmodel:\n  # num_layers: 3\n");
  EXPECT_EQ(config.data.validation.at(0).path, "a");
  EXPECT_EQ(config.data.validation.at(0).weight, 2.0);
  EXPECT_EQ(config.schedule.warmup_steps, 5);
}

TEST(ConfigFile, SettingsWinOverTheFileAndTheLastOfThemWins) {
  const Config config =
      parse(kMinimal, {"train.steps=3", "train.steps=4", "data.train=[{path: x}]",
                       "model.position=rope", "model.rope={theta: 5e5}", "run.name='7'"});
  EXPECT_EQ(config.train.steps, 4);
  EXPECT_EQ(config.data.train.at(0).path, "x");
  EXPECT_EQ(config.model.rope.theta, 5e5);
  EXPECT_EQ(config.run.name, "7");
}

// --- What is refused, and in which words ---------------------------------------------------------

TEST(ConfigFile, AnUnknownKeyIsNamedWithTheNearestAndTheLegalOnes) {
  EXPECT_EQ(mistakes_of(kMinimal + "schedule:\n  kind: cosine\n  warmup: 3\n"),
            "run.yaml:7:3: schedule.warmup: unknown key; nearest: schedule.warmup_steps; "
            "legal here: kind, warmup_steps, decay_steps, min_ratio");
}

TEST(ConfigFile, AKeyThatIsFarFromAllIsNamedWithoutANearest) {
  EXPECT_EQ(mistakes_of(kMinimal + "run: {hang_seconds: 3}\n"),
            "run.yaml:5:7: run.hang_seconds: unknown key; legal here: name, output_dir, seed, "
            "device, precision, collectives");
}

TEST(ConfigFile, AKeyInAWrongSectionIsFoundInItsOwn) {
  EXPECT_EQ(mistakes_of(kMinimal + "  learning_rate: 3\n"),
            "run.yaml:5:3: train.learning_rate: unknown key; nearest: optimizer.learning_rate; "
            "legal here: steps, log_interval, eval_interval, eval_batches");
}

TEST(ConfigFile, AnUnknownSectionIsNamed) {
  EXPECT_EQ(mistakes_of(kMinimal + "optimiser: {beta1: 0.5}\n"),
            "run.yaml:5:1: optimiser: unknown key; nearest: optimizer; legal here: run, model, "
            "data, batch, parallel, optimizer, schedule, train, checkpoint");
}

TEST(ConfigFile, ADuplicateKeyIsNamedWithItsFirstPlace) {
  EXPECT_EQ(mistakes_of(kMinimal + "  log_interval: 2\n  steps: 20\n"),
            "run.yaml:6:3: train.steps: duplicate key; first given at run.yaml:4:3");
  EXPECT_EQ(mistakes_of(kMinimal + "data: {}\n"),
            "run.yaml:5:1: data: duplicate key; first given at run.yaml:1:1");
}

TEST(ConfigFile, AKeyWithADotIsToldToIndent) {
  EXPECT_EQ(mistakes_of(kMinimal + "model.num_layers: 3\n"),
            "run.yaml:5:1: model.num_layers: a dot in a key; in a file, each part is a level of "
            "indentation");
}

TEST(ConfigFile, AWholeNumberIsWrittenInDigits) {
  const auto read = [](const std::string& value) {
    return mistakes_of(kMinimal + "model: {num_layers: " + value + "}\n");
  };
  const std::string where = "run.yaml:5:21: model.num_layers: ";
  EXPECT_EQ(read("1.5"), where + "read the number 1.5; " + kWholeNumber);
  EXPECT_EQ(read("1e3"), where + "read the number 1e3; " + kWholeNumber);
  EXPECT_EQ(read("\"3\""), where + "read the quoted text \"3\"; " + kWholeNumber);
  EXPECT_EQ(read("three"), where + "read the text \"three\"; " + kWholeNumber);
  EXPECT_EQ(read("true"), where + "read the boolean true; " + kWholeNumber);
  EXPECT_EQ(read("[3]"), where + "read a list; " + kWholeNumber);
  EXPECT_EQ(read("{a: 3}"), where + "read a map of keys; " + kWholeNumber);
  EXPECT_EQ(read("1_000"), where + "read the text \"1_000\"; " + kWholeNumber);
  EXPECT_EQ(read("0x10"), where + "read the text \"0x10\"; " + kWholeNumber);
  EXPECT_EQ(read("010"),
            where + "read the number 010: leading zeros are ambiguous; " + kWholeNumber);
  EXPECT_EQ(read("9223372036854775808"),
            where +
                "read the number 9223372036854775808: outside -9223372036854775808 to "
                "9223372036854775807; " +
                kWholeNumber);
  EXPECT_EQ(read("!!int 3"),
            where + "read the tag tag:yaml.org,2002:int; legal: a value without tag");
}

TEST(ConfigFile, AKeyWithoutValueIsNamedAtTheKey) {
  EXPECT_EQ(mistakes_of(kMinimal + "batch:\n  micro_batch_size:\n"),
            std::string("run.yaml:6:3: batch.micro_batch_size: read no value; ") + kWholeNumber);
}

TEST(ConfigFile, ASeedIsNotNegative) {
  EXPECT_NE(mistakes_of(kMinimal + "run: {seed: -1}\n")
                .find("run.yaml:5:13: run.seed: read the number -1: outside 0 to "
                      "18446744073709551615"),
            std::string::npos);
}

TEST(ConfigFile, ANumberIsFiniteAndNotQuoted) {
  const auto read = [](const std::string& value) {
    return mistakes_of(kMinimal + "optimizer: {learning_rate: " + value + "}\n");
  };
  const std::string where = "run.yaml:5:28: optimizer.learning_rate: ";
  const std::string legal = "; legal: a finite number, like 0.1 or 1e-4, without quotes";
  EXPECT_EQ(read("'1e-4'"), where + "read the quoted text \"1e-4\"" + legal);
  EXPECT_EQ(read("1e-4x"), where + "read the text \"1e-4x\"" + legal);
  EXPECT_EQ(read(".inf"), where + "read the text \".inf\"" + legal);
  EXPECT_EQ(read("nan"), where + "read the text \"nan\"" + legal);
  EXPECT_EQ(read("1e999"),
            where + "read the number 1e999: too large or too small for a double" + legal);
  EXPECT_EQ(read("e5"), where + "read the text \"e5\"" + legal);
  EXPECT_EQ(read("."), where + "read the text \".\"" + legal);
}

TEST(ConfigFile, ABooleanIsTrueOrFalse) {
  for (const std::string wrong : {"yes", "True", "1", "'true'", "on"}) {
    EXPECT_NE(
        mistakes_of(kMinimal, {"model.bias=" + wrong}).find("legal: true or false, without quotes"),
        std::string::npos)
        << wrong;
  }
}

TEST(ConfigFile, TextIsNoNumber) {
  EXPECT_EQ(mistakes_of(kMinimal + "run: {name: 42}\n"),
            "run.yaml:5:13: run.name: read the number 42: as text it is written \"42\"; legal: "
            "text in UTF-8");
}

TEST(ConfigFile, AWordIsOneOfThoseThatAreKnown) {
  EXPECT_EQ(mistakes_of(kMinimal + "schedule: {kind: cos}\n"),
            "run.yaml:5:18: schedule.kind: read the text \"cos\"; legal: constant, linear, cosine, "
            "wsd");
}

TEST(ConfigFile, ASectionIsAMap) {
  EXPECT_EQ(mistakes_of(kMinimal + "batch: 8\n"),
            "run.yaml:5:8: batch: read the number 8; legal: a map of the keys sequence_length, "
            "global_batch_size, micro_batch_size");
}

TEST(ConfigFile, AListOfFilesIsCheckedEntryByEntry) {
  EXPECT_EQ(mistakes_of("train: {steps: 1}\ndata:\n  train: [{path: a}, {weight: 2}, {paht: b}]\n"),
            "run.yaml:3:22: data.train[1].path: missing; legal: the path of a token file\n"
            "run.yaml:3:36: data.train[2].paht: unknown key; nearest: data.train[2].path; legal "
            "here: path, weight\n"
            "run.yaml:3:35: data.train[2].path: missing; legal: the path of a token file");
  EXPECT_EQ(mistakes_of("train: {steps: 1}\ndata: {train: corpus}\n"),
            "run.yaml:2:15: data.train: read the text \"corpus\"; legal: a list of files, like "
            "[{path: data/train, weight: 1.0}]");
}

TEST(ConfigFile, RequiredKeysAreNamedAsMissing) {
  EXPECT_EQ(mistakes_of("data: {}\n"),
            std::string("run.yaml:1:7: data.train: missing; legal: a list of files, like [{path: "
                        "data/train, weight: 1.0}]\nrun.yaml: train.steps: missing; ") +
                kWholeNumber);
}

TEST(ConfigFile, BrokenYamlIsNamedWithItsPlace) {
  EXPECT_EQ(mistakes_of("model: {num_layers: 3\ntrain: 1\n").substr(0, 31),
            "run.yaml:2:6: no valid YAML: en");
  EXPECT_EQ(mistakes_of("train: *nowhere\n"),
            "run.yaml:1:8: no valid YAML: the referenced anchor is not defined");
}

TEST(ConfigFile, AFileIsOneMap) {
  const std::string legal =
      "; legal: a map of the sections run, model, data, batch, parallel, optimizer, schedule, "
      "train, checkpoint";
  EXPECT_EQ(mistakes_of(""), "run.yaml: read nothing: the file is empty" + legal);
  EXPECT_EQ(mistakes_of("# nothing\n"), "run.yaml: read nothing: the file is empty" + legal);
  EXPECT_EQ(mistakes_of("- 1\n"), "run.yaml:1:1: read a list" + legal);
  EXPECT_EQ(mistakes_of(kMinimal + "---\nrun: {}\n"), "run.yaml:6:1: 2 YAML documents; legal: one");
}

TEST(ConfigFile, ASettingIsAsStrictAsTheFile) {
  EXPECT_EQ(mistakes_of(kMinimal, {"model.num_layer=3"}).substr(0, 92),
            "--set model.num_layer=3: model.num_layer: unknown key; nearest: model.num_layers; "
            "legal here");
  EXPECT_EQ(mistakes_of(kMinimal, {"model.num_layers=3.5"}),
            std::string("--set model.num_layers=3.5: model.num_layers: read the number 3.5; ") +
                kWholeNumber);
  EXPECT_EQ(mistakes_of(kMinimal, {"train.steps"}),
            "--set train.steps: legal: KEY=VALUE, like model.num_layers=24");
  EXPECT_EQ(mistakes_of(kMinimal, {"train.steps=0"}),
            "--set train.steps=0: train.steps: is 0; legal: 1 to 2147483647");
  EXPECT_EQ(mistakes_of(kMinimal, {"model.rope={fator: 2}"}).substr(0, 74),
            "--set model.rope={fator: 2}: model.rope.fator: unknown key; nearest: model");
}

// --- Values against one another ------------------------------------------------------------------

TEST(ConfigFile, AllMistakesAreListedInOneGo) {
  EXPECT_EQ(mistakes_of("model:\n"
                        "  num_heads: 5\n"
                        "  num_layrs: 3\n"
                        "  dropout: 1.5\n"
                        "batch:\n"
                        "  sequence_length: 2048\n"
                        "train:\n"
                        "  steps: many\n"
                        "  steps: 3\n",
                        {"schedule.min_ratio=2"}),
            std::string("run.yaml:3:3: model.num_layrs: unknown key; nearest: model.num_layers; "
                        "legal here: family, num_layers, hidden_size, num_heads, num_kv_heads, "
                        "ffn_size, vocab_size, max_sequence_length, position, rope, norm, "
                        "norm_epsilon, activation, bias, tie_embeddings, dropout\n"
                        "run.yaml:8:10: train.steps: read the text \"many\"; ") +
                kWholeNumber +
                "\nrun.yaml:9:3: train.steps: duplicate key; first given at run.yaml:8:3\n"
                "run.yaml: data.train: missing; legal: a list of files, like [{path: data/train, "
                "weight: 1.0}]\n"
                "run.yaml:4:12: model.dropout: is 1.5; legal: 0 (off) to below 1\n"
                "run.yaml:2:14: model.num_heads: is 5, which does not divide model.hidden_size "
                "(768)\n"
                "--set schedule.min_ratio=2: schedule.min_ratio: is 2; legal: 0 to 1\n"
                "run.yaml:6:20: batch.sequence_length: is 2048, longer than "
                "model.max_sequence_length (1024)");
}

TEST(ConfigFile, AWrongTextIsNotBlamedTwice) {
  // 5 heads do not divide the default hidden size, but nobody asked for the default.
  EXPECT_EQ(mistakes_of(kMinimal + "model: {hidden_size: '640', num_heads: 5}\n"),
            std::string("run.yaml:5:22: model.hidden_size: read the quoted text \"640\"; ") +
                kWholeNumber);
}

TEST(ConfigFile, ADefaultOrPresetThatDoesNotFitIsNamedAsSuch) {
  EXPECT_EQ(mistakes_of(kMinimal + "model: {hidden_size: 100}\n"),
            "model.num_heads (default): is 12, which does not divide model.hidden_size (100)");
  EXPECT_EQ(mistakes_of(kMinimal + "model: {max_sequence_length: 0}\n"),
            "run.yaml:5:30: model.max_sequence_length: is 0; legal: 1 to 4194304");
}

TEST(ConfigFile, TheTensorDegreeFitsTheWorldAndTheHeads) {
  EXPECT_EQ(mistakes_of(kMinimal + "parallel: {tensor: 4}\n", {}, 6),
            "run.yaml:5:20: parallel.tensor: is 4, which does not divide the 6 ranks of this job; "
            "what fits 6 ranks and 12 heads: 1, 2, 3, 6");
  EXPECT_EQ(mistakes_of(kMinimal + "parallel: {tensor: 8}\n", {}, 8),
            "run.yaml:5:20: parallel.tensor: is 8, which does not divide model.num_heads (12): a "
            "head is never split");
}

TEST(ConfigFile, KeyValueHeadsDivideTheHeadsAndMayBeFewerThanTheTensorDegree) {
  EXPECT_EQ(mistakes_of(kMinimal + "model: {num_kv_heads: 5}\n"),
            "run.yaml:5:23: model.num_kv_heads: is 5, which does not divide model.num_heads (12)");
  EXPECT_EQ(mistakes_of(kMinimal + "model: {num_kv_heads: 2}\nparallel: {tensor: 4}\n", {}, 4), "");
}

TEST(ConfigFile, TheGlobalBatchSplitsEvenlyAndTheNeighboursAreNamed) {
  EXPECT_EQ(mistakes_of(kMinimal + "batch: {global_batch_size: 100, micro_batch_size: 8}\n"
                                   "parallel: {tensor: 2}\n",
                        {}, 8),
            "run.yaml:5:28: batch.global_batch_size: is 100, which is no multiple of 32 sequences "
            "(4 data ranks x batch.micro_batch_size 8); nearest: 96 and 128");
  EXPECT_EQ(mistakes_of(kMinimal + "batch: {global_batch_size: 3, micro_batch_size: 4}\n"),
            "run.yaml:5:28: batch.global_batch_size: is 3, which is no multiple of 4 sequences (1 "
            "data rank x batch.micro_batch_size 4); nearest: 4");
}

TEST(ConfigFile, RotaryHeadsAreEven) {
  EXPECT_EQ(mistakes_of(kMinimal + "model: {position: rope, hidden_size: 9, num_heads: 3}\n"),
            "run.yaml:5:52: model.num_heads: is 3, which gives heads of 3 = 9 / 3; rotary "
            "positions turn pairs, so the head size must be even");
}

TEST(ConfigFile, WhatIsNotBuiltIsSaidHonestly) {
  const std::string all =
      mistakes_of(kMinimal +
                  "parallel: {sequence: true, optimizer: sharded, recompute: "
                  "block}\nrun: {device: cpu, precision: bf16, collectives: nccl}\n");
  for (const std::string part :
       {"run.yaml:5:22: parallel.sequence: is true", "legal here: false",
        "run.yaml:5:39: parallel.optimizer: is sharded", "legal here: replicated",
        "run.yaml:5:59: parallel.recompute: is block", "legal here: none",
        "run.yaml:6:31: run.precision: is bf16, but run.device is cpu",
        "run.yaml:6:50: run.collectives: is nccl, but run.device is cpu"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\nin\n" << all;
  }
}

TEST(ConfigFile, AMistakeFoundLaterGetsThePlaceOfItsKey) {
  const EffectiveConfig effective = parse_config(
      "train: {steps: 1}\ndata:\n  train:\n    - {path: a}\n    - path: b\n", "run.yaml", {}, 1);
  const ConfigError error =
      with_places(ConfigError(std::vector<ConfigProblem>{{"data.train[1].path", "is no file"},
                                                         {"data.train[0]", "is odd"}}),
                  effective);
  EXPECT_STREQ(error.what(),
               "run.yaml:5:13: data.train[1].path: is no file\n"
               "run.yaml:4:7: data.train[0]: is odd");
}

}  // namespace
}  // namespace redspine::testing
