// Who reads a checkpoint for use looks whether it is as it was written: one flipped bit of a weight
// is a model that trained badly, for all that anybody can see.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/launch/commands/trained.h"
#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

void flip_last_bit(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const auto at = file.tellg();
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

/// A copy of the last checkpoint; the last bit of its file `name` is another.
std::string damaged(const std::string& name) {
  std::string copy = fresh("damaged");
  fs::copy(trained("last"), copy);
  flip_last_bit(copy + "/" + name);
  return copy;
}

constexpr const char* kModel = "model-00001-of-00001.safetensors";
constexpr const char* kOptimizer = "optimizer-00001-of-00001.safetensors";
constexpr const char* kNotCompared = " was not compared with its manifest (--no-verify)\n";

void expect_rejected(const Result& result, const std::string& key, const std::string& directory) {
  EXPECT_EQ(result.exit_code, 2) << result.output;
  const std::string cause =
      fmt::format("{}{}/{}: tensor transformer.ln_f.bias: differs from what was written\n", key,
                  directory, kModel);
  EXPECT_EQ(count(result.output, cause), 1) << cause << " in\n" << result.output;
}

std::string train_from(const std::string& directory, const std::string& run) {
  return fmt::format(
      "train --config {} --set run.name={} train.steps=1 train.eval_interval=0 "
      "checkpoint.initialize_from={}",
      trained("run.yaml"), run, directory);
}

TEST(ADamagedModel, IsNeitherExportedNorImportedAndNothingVouchesForIt) {
  const std::string source = damaged(kModel);
  const std::string output = fresh("output");
  for (const std::string command : {"export", "import"}) {
    const std::string words = fmt::format("checkpoint {} {} --output {}", command, source, output);
    expect_rejected(redspine(words), "redspine: ", source);
    EXPECT_FALSE(fs::exists(output));

    const Result forced = redspine(words + " --no-verify");
    EXPECT_EQ(forced.exit_code, 0) << forced.output;
    EXPECT_EQ(count(forced.output, source + kNotCompared), 1) << forced.output;
    EXPECT_EQ(redspine("checkpoint verify " + output).exit_code, 1);
    fs::remove_all(output);
  }
}

TEST(ADamagedModel, IsNotCompared) {
  const std::string source = damaged(kModel);
  const std::string words = fmt::format("checkpoint diff {} {}", trained("last"), source);
  expect_rejected(redspine(words), "redspine: ", source);
  const Result forced = redspine(words + " --no-verify");
  EXPECT_EQ(forced.exit_code, 1) << forced.output;
  EXPECT_EQ(count(forced.output, "\ndifferent: 83 of 84 tensors are equal\n"), 1) << forced.output;
}

TEST(ADamagedModel, IsNeitherEvaluatedNorSampledOnAnyNumberOfRanks) {
  const std::string source = damaged(kModel);
  const std::string evaluate =
      fmt::format("evaluate --json --checkpoint {} --data {}", source, trained("tokens"));
  const std::string sample = fmt::format("sample --tokens 3 --checkpoint {}", source);
  for (const std::string& words : {evaluate, sample}) {
    for (const int num_ranks : {1, 2}) {
      expect_rejected(on_ranks(num_ranks, words), "--checkpoint: ", source);
    }
    const Result forced = redspine(words + " --no-verify");
    EXPECT_EQ(forced.exit_code, 0) << forced.output;
    EXPECT_EQ(count(forced.output, source + kNotCompared), 1) << forced.output;
  }
  EXPECT_EQ(count(redspine(evaluate + " --no-verify").output, R"("verified":false)"), 1);
}

TEST(ADamagedModel, BeginsNoRun) {
  const std::string source = damaged(kModel);
  for (const int num_ranks : {1, 2}) {
    expect_rejected(on_ranks(num_ranks, train_from(source, "refused") +
                                            fmt::format(" parallel.tensor={}", num_ranks)),
                    "checkpoint.initialize_from: ", source);
    EXPECT_FALSE(fs::exists(trained("refused")));
  }
  const Result forced = redspine(train_from(source, "forced") + " checkpoint.verify=false");
  EXPECT_EQ(forced.exit_code, 0) << forced.output;
  EXPECT_EQ(count(forced.output, "hashes were not compared (checkpoint.verify is false)"), 1)
      << forced.output;
}

TEST(ADamagedModel, IsOneWhoseConfigurationWasChangedToo) {
  const std::string source = fresh("copy");
  fs::copy(trained("last"), source);
  std::ofstream(source + "/config.json", std::ios::app) << "\n";
  const Result result = redspine("sample --tokens 3 --checkpoint " + source);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, "--checkpoint: " + source + "/config.json: has "), 1)
      << result.output;
}

TEST(ADamagedModel, IsNotOneWhoseOptimizerAloneIsDamaged) {
  const std::string source = damaged(kOptimizer);
  const Result result =
      redspine(fmt::format("evaluate --json --checkpoint {} --data {}", source, trained("tokens")));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(count(result.output, R"("verified":true)"), 1) << result.output;
}

TEST(ACheckpoint, WithoutItsManifestIsIncompleteForThoseWhoUseIt) {
  const std::string source = fresh("copy");
  fs::copy(trained("last"), source);
  fs::remove(source + "/manifest.json");
  const Result result = redspine("sample --tokens 3 --checkpoint " + source);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, source + ": is no complete checkpoint"), 1) << result.output;
}

TEST(ACheckpoint, IsNotLedToOtherFilesByAnIndexThatCameLater) {
  const std::string exported = fresh("exported");
  ASSERT_EQ(redspine(fmt::format("checkpoint export {} --output {}", trained("last"), exported))
                .exit_code,
            0);
  std::ofstream(exported + "/model.safetensors.index.json") << R"({"weight_map": {}})";
  const Result result = redspine("sample --tokens 3 --checkpoint " + exported);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, "/model.safetensors.index.json: is not in the manifest"), 1)
      << result.output;
}

// --- What is no checkpoint

void expect_problem(const std::string& words, const std::string& part) {
  const Result result = redspine(words);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, part), 1) << part << " in\n" << result.output;
}

TEST(APath, ThatIsNotThereIsNoIncompleteCheckpoint) {
  expect_problem("checkpoint verify /no/such", "] /no/such: does not exist\n");
  expect_problem("checkpoint inspect /no/such", "/no/such: does not exist\n");
  const std::string train = "train --config " + trained("run.yaml") + " --set run.name=nowhere ";
  expect_problem(train + "checkpoint.resume=/no/such",
                 "checkpoint.resume: /no/such: does not exist\n");
  expect_problem(train + "checkpoint.initialize_from=/no/such",
                 "checkpoint.initialize_from: /no/such: does not exist\n");
  EXPECT_FALSE(fs::exists(trained("nowhere")));
}

TEST(APath, ThatIsANameOfTheHubOrAnotherFormGetsAHint) {
  for (const std::string name : {"gpt2", "meta-llama/Llama-3.2-1B"}) {
    expect_problem(
        "sample --checkpoint " + name,
        fmt::format("{0}: does not exist; a model of the Hugging Face hub is not fetched "
                    "from here: `hf download {0} --local-dir DIR` does",
                    name));
  }
  for (const std::string path : {"runs.d/a/b", "./gpt2"}) {
    expect_problem("sample --checkpoint " + path, path + ": does not exist\n");
  }
  const std::string gguf = fresh("model.gguf");
  std::ofstream file(gguf);
  expect_problem("checkpoint import --output /tmp/x " + gguf,
                 gguf + " is in llama.cpp's form, which is not read: take the model's safetensors");
  expect_problem(fmt::format("checkpoint inspect {}/{}", trained("last"), kModel),
                 fmt::format("{}: is no directory; legal: the folder that it lies in", kModel));
  const std::string folder = fresh("folder");
  fs::create_directory(folder);
  std::ofstream(folder + "/Q4_K.gguf") << "GGUF";
  expect_problem("sample --checkpoint " + folder, "Q4_K.gguf is in llama.cpp's form");
}

TEST(WeightsOfAnotherModel, AreToldByTheSettingsThatDiffer) {
  const Result result = redspine(train_from(trained("last"), "other") +
                                 " model.num_layers=3 model.hidden_size=64 model.dropout=0.1");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, "--set model.num_layers=3: model.num_layers: is 3, but " +
                                     trained("last") + "/config.json says 2"),
            1)
      << result.output;
  EXPECT_EQ(count(result.output, ": model.hidden_size: is 64, but "), 1) << result.output;
  EXPECT_EQ(count(result.output, "model.ffn_size (from model.hidden_size): is 256, but "), 1)
      << result.output;
  EXPECT_EQ(count(result.output, "tensor "), 0) << result.output;
  EXPECT_EQ(count(result.output, "\n"), 3) << result.output;
  EXPECT_FALSE(fs::exists(trained("other")));
}

TEST(WeightsOfAnotherModel, AreToldByTheirKindToo) {
  const Result result = redspine(train_from(trained("last"), "other") + " model.family=llama");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, "model.position (preset llama): is rope, but "), 1)
      << result.output;
  EXPECT_EQ(count(result.output, "embedding.weight"), 0) << result.output;
}

}  // namespace
}  // namespace redspine::testing
