#include "launch/config/config_file.h"

#include <gtest/gtest.h>

#include "tests/launch/config/parsed_config.h"

namespace redspine::testing {
namespace {

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

// --- What is rejected, and in which words --------------------------------------------------------

TEST(ConfigFile, AnUnknownKeyIsNamedWithTheNearestAndTheLegalOnes) {
  EXPECT_EQ(problems_of(kMinimal + "schedule:\n  kind: cosine\n  warmup: 3\n"),
            "run.yaml:7:3: schedule.warmup: unknown key; nearest: schedule.warmup_steps; "
            "legal here: kind, warmup_steps, decay_steps, min_ratio");
}

TEST(ConfigFile, AKeyThatIsFarFromAllIsNamedWithoutANearest) {
  EXPECT_EQ(problems_of(kMinimal + "run: {hang_seconds: 3}\n"),
            "run.yaml:5:7: run.hang_seconds: unknown key; legal here: name, output_dir, seed, "
            "device, precision, collectives, exact, exact_leaves, exact_lanes, check_replicas, "
            "spot_check_interval");
}

TEST(ConfigFile, AKeyInAWrongSectionIsFoundInItsOwn) {
  EXPECT_EQ(problems_of(kMinimal + "  learning_rate: 3\n"),
            "run.yaml:5:3: train.learning_rate: unknown key; nearest: optimizer.learning_rate; "
            "legal here: steps, log_interval, eval_interval, eval_batches");
}

TEST(ConfigFile, AnUnknownSectionIsNamed) {
  EXPECT_EQ(problems_of(kMinimal + "optimiser: {beta1: 0.5}\n"),
            "run.yaml:5:1: optimiser: unknown key; nearest: optimizer; legal here: run, model, "
            "data, batch, parallel, optimizer, schedule, train, checkpoint");
}

TEST(ConfigFile, ADuplicateKeyIsNamedWithItsFirstPlace) {
  EXPECT_EQ(problems_of(kMinimal + "  log_interval: 2\n  steps: 20\n"),
            "run.yaml:6:3: train.steps: duplicate key; first given at run.yaml:4:3");
  EXPECT_EQ(problems_of(kMinimal + "data: {}\n"),
            "run.yaml:5:1: data: duplicate key; first given at run.yaml:1:1");
}

TEST(ConfigFile, AKeyWithADotIsToldToIndent) {
  EXPECT_EQ(problems_of(kMinimal + "model.num_layers: 3\n"),
            "run.yaml:5:1: model.num_layers: a dot in a key; in a file, each part is a level of "
            "indentation");
}

TEST(ConfigFile, AWholeNumberIsWrittenInDigits) {
  const auto read = [](const std::string& value) {
    return problems_of(kMinimal + "model: {num_layers: " + value + "}\n");
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
  EXPECT_EQ(problems_of(kMinimal + "batch:\n  micro_batch_size:\n"),
            std::string("run.yaml:6:3: batch.micro_batch_size: read no value; ") + kWholeNumber);
}

TEST(ConfigFile, ASeedIsNotNegative) {
  EXPECT_NE(problems_of(kMinimal + "run: {seed: -1}\n")
                .find("run.yaml:5:13: run.seed: read the number -1: outside 0 to "
                      "18446744073709551615"),
            std::string::npos);
}

TEST(ConfigFile, ANumberIsFiniteAndNotQuoted) {
  const auto read = [](const std::string& value) {
    return problems_of(kMinimal + "optimizer: {learning_rate: " + value + "}\n");
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
        problems_of(kMinimal, {"model.bias=" + wrong}).find("legal: true or false, without quotes"),
        std::string::npos)
        << wrong;
  }
}

TEST(ConfigFile, TextIsNoNumber) {
  EXPECT_EQ(problems_of(kMinimal + "run: {name: 42}\n"),
            "run.yaml:5:13: run.name: read the number 42: as text it is written \"42\"; legal: "
            "text in UTF-8");
}

TEST(ConfigFile, AWordIsOneOfThoseThatAreKnown) {
  EXPECT_EQ(problems_of(kMinimal + "schedule: {kind: cos}\n"),
            "run.yaml:5:18: schedule.kind: read the text \"cos\"; legal: constant, linear, cosine, "
            "wsd");
}

TEST(ConfigFile, ASectionIsAMap) {
  EXPECT_EQ(problems_of(kMinimal + "batch: 8\n"),
            "run.yaml:5:8: batch: read the number 8; legal: a map of the keys sequence_length, "
            "global_batch_size, micro_batch_size");
}

TEST(ConfigFile, AListOfFilesIsCheckedEntryByEntry) {
  EXPECT_EQ(problems_of("train: {steps: 1}\ndata:\n  train: [{path: a}, {weight: 2}, {paht: b}]\n"),
            "run.yaml:3:22: data.train[1].path: missing; legal: the path of a token file\n"
            "run.yaml:3:36: data.train[2].paht: unknown key; nearest: data.train[2].path; legal "
            "here: path, weight\n"
            "run.yaml:3:35: data.train[2].path: missing; legal: the path of a token file");
  EXPECT_EQ(problems_of("train: {steps: 1}\ndata: {train: corpus}\n"),
            "run.yaml:2:15: data.train: read the text \"corpus\"; legal: a list of files, like "
            "[{path: data/train, weight: 1.0}]");
}

TEST(ConfigFile, RequiredKeysAreNamedAsMissing) {
  EXPECT_EQ(problems_of("data: {}\n"),
            std::string("run.yaml:1:7: data.train: missing; legal: a list of files, like [{path: "
                        "data/train, weight: 1.0}]\nrun.yaml: train.steps: missing; ") +
                kWholeNumber);
}

TEST(ConfigFile, BrokenYamlIsNamedWithItsPlace) {
  EXPECT_EQ(problems_of("model: {num_layers: 3\ntrain: 1\n").substr(0, 31),
            "run.yaml:2:6: no valid YAML: en");
  EXPECT_EQ(problems_of("train: *nowhere\n"),
            "run.yaml:1:8: no valid YAML: the referenced anchor is not defined");
}

TEST(ConfigFile, AFileIsOneMap) {
  const std::string legal =
      "; legal: a map of the sections run, model, data, batch, parallel, optimizer, schedule, "
      "train, checkpoint";
  EXPECT_EQ(problems_of(""), "run.yaml: read nothing: the file is empty" + legal);
  EXPECT_EQ(problems_of("# nothing\n"), "run.yaml: read nothing: the file is empty" + legal);
  EXPECT_EQ(problems_of("- 1\n"), "run.yaml:1:1: read a list" + legal);
  EXPECT_EQ(problems_of(kMinimal + "---\nrun: {}\n"), "run.yaml:6:1: 2 YAML documents; legal: one");
}

TEST(ConfigFile, ASettingIsAsStrictAsTheFile) {
  EXPECT_EQ(problems_of(kMinimal, {"model.num_layer=3"}).substr(0, 92),
            "--set model.num_layer=3: model.num_layer: unknown key; nearest: model.num_layers; "
            "legal here");
  EXPECT_EQ(problems_of(kMinimal, {"model.num_layers=3.5"}),
            std::string("--set model.num_layers=3.5: model.num_layers: read the number 3.5; ") +
                kWholeNumber);
  EXPECT_EQ(problems_of(kMinimal, {"train.steps"}),
            "--set train.steps: legal: KEY=VALUE, like model.num_layers=24");
  EXPECT_EQ(problems_of(kMinimal, {"train.steps=0"}),
            "--set train.steps=0: train.steps: is 0; legal: 1 to 2147483647");
  EXPECT_EQ(problems_of(kMinimal, {"model.rope={fator: 2}"}).substr(0, 74),
            "--set model.rope={fator: 2}: model.rope.fator: unknown key; nearest: model");
}

}  // namespace
}  // namespace redspine::testing
