// `redspine checkpoint` on what training has left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/launch/commands/trained.h"
#include "tests/support/command_line.h"
#include "tests/support/model_files.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

std::string copy_of(const std::string& name) {
  std::string copy = fresh(name);
  fs::copy(trained(name), copy);
  return copy;
}

/// Inverts the lowest bit of one byte, counted from the end.
void flip_from_end(const std::string& path, std::int64_t distance) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-distance, std::ios::end);
  const auto at = file.tellg();
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

void expect_problem(const std::string& words, const std::string& part) {
  const Result result = redspine("checkpoint " + words);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, part), 1) << part << " in\n" << result.output;
}

TEST(CheckpointCommand, HelpListsTheCommandsAndEachHasItsOwn) {
  const Result help = redspine("checkpoint --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const std::string name : {"inspect", "verify", "diff", "import", "export"}) {
    EXPECT_EQ(count(help.output, "\n  " + name + " "), 1) << help.output;
    const Result of_command = redspine("checkpoint " + name + " --help");
    EXPECT_EQ(of_command.exit_code, 0);
    EXPECT_EQ(count(of_command.output, "redspine checkpoint " + name + " "), 1);
  }
  EXPECT_EQ(redspine("checkpoint").exit_code, 2);
  expect_problem("verfy x", "checkpoint verfy: unknown command; nearest: verify;");
}

TEST(CheckpointCommand, InspectShowsTensorsLayersStepAndConfiguration) {
  const Result result = redspine("checkpoint inspect " + trained("last"));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const std::string line :
       {R"(step +120, after 960 samples and 23040 tokens)", R"(layout +1 data x 1 tensor .*)",
        R"(transformer\.h\.1\.attn\.c_attn\.weight +F32 +\[32, 96\] +3072 +[0-9.]+ +[0-9a-f]{32})",
        R"(digest +[0-9a-f]{32}, as training\.json says)",
        R"(exp_avg +[0-9a-f]{32}, as training\.json says)",
        R"(exp_avg_sq +[0-9a-f]{32}, as training\.json says)",
        R"(transformer\.h\.1 +12704 +[0-9.]+)", R"(  batch\.sequence_length: 24)",
        R"(tensors +28, and 56 of the optimizer; .* bytes)"}) {
    EXPECT_TRUE(std::regex_search(result.output, std::regex("\n" + line + "\n"))) << line << " in\n"
                                                                                  << result.output;
  }
}

TEST(CheckpointCommand, InspectGivesTheSameAsJson) {
  const Result result = redspine("checkpoint inspect --json " + trained("last"));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["training"]["step"], 120);
  EXPECT_EQ(json["training"]["config"]["batch.sequence_length"], "24");
  EXPECT_EQ(json["model"]["n_embd"], 32);
  ASSERT_EQ(json["tensors"].size(), 28U);
  std::int64_t parameters = 0;
  double of_tensors = 0.0;
  for (const auto& tensor : json["tensors"]) {
    parameters += tensor["parameters"].get<std::int64_t>();
    of_tensors += std::pow(tensor["norm"].get<double>(), 2);
  }
  double of_layers = 0.0;
  for (const auto& layer : json["layers"]) of_layers += std::pow(layer["norm"].get<double>(), 2);
  EXPECT_EQ(json["parameters"], parameters);
  EXPECT_EQ(json["weights_digest"], json["training"]["digests"]["weights"]);
  EXPECT_EQ(json["exp_avg_digest"], json["training"]["digests"]["exp_avg"]);
  EXPECT_EQ(json["exp_avg_sq_digest"], json["training"]["digests"]["exp_avg_sq"]);
  for (const auto& tensor : json["tensors"]) {
    const auto& recorded = json["training"]["digests"]["tensors"];
    EXPECT_EQ(tensor["digest"], recorded[tensor["name"].get<std::string>()]);
  }
  EXPECT_NEAR(of_layers, of_tensors, 1e-9 * of_tensors);
}

TEST(CheckpointCommand, VerifyFindsNothingInWhatTrainingWrote) {
  for (const int num_ranks : {1, 2}) {
    const Result result = on_ranks(num_ranks, "checkpoint verify " + trained("last"));
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_TRUE(std::regex_search(
        result.output,
        std::regex("every byte is as it was written, weights_digest [0-9a-f]{32}\n")))
        << result.output;
  }
}

TEST(CheckpointCommand, VerifyNamesTheTensorAndTheFileOfEveryDamage) {
  const std::string copy = copy_of("last");
  const std::string model = copy + "/model-00001-of-00001.safetensors";
  const std::string optimizer = copy + "/optimizer-00001-of-00001.safetensors";
  flip_from_end(model, 1);
  flip_from_end(optimizer, 40);
  fs::remove(copy + "/config.json");
  for (const int num_ranks : {1, 2}) {
    const Result result = on_ranks(num_ranks, "checkpoint verify " + copy);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.exit_code, 2);
    EXPECT_EQ(count(result.output,
                    model + ": tensor transformer.ln_f.bias: differs from what was written"),
              1)
        << result.output;
    EXPECT_EQ(count(result.output, optimizer + ": tensor exp_avg_sq."), 1);
    EXPECT_EQ(count(result.output, copy + "/config.json: No such file or directory"), 1);
  }
  EXPECT_EQ(redspine("checkpoint verify " + copy).exit_code, 1);
}

TEST(CheckpointCommand, VerifySeesAFileCutShortAndACheckpointWithoutItsManifest) {
  const std::string copy = copy_of("last");
  fs::resize_file(copy + "/training.json", 5);
  const Result cut = redspine("checkpoint verify " + copy);
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_EQ(count(cut.output, "/training.json: has 5 bytes; the manifest says "), 1) << cut.output;
  fs::remove(copy + "/manifest.json");
  const Result incomplete = redspine("checkpoint verify " + copy);
  EXPECT_EQ(incomplete.exit_code, 1);
  EXPECT_EQ(count(incomplete.output, copy + ": is no complete checkpoint"), 1) << incomplete.output;
}

TEST(CheckpointCommand, DiffTellsEqualFromDifferentByItsExitCode) {
  const Result equal =
      redspine(fmt::format("checkpoint diff {} {}", trained("last"), copy_of("last")));
  EXPECT_EQ(equal.exit_code, 0) << equal.output;
  EXPECT_EQ(count(equal.output, "\nequal: 84 of 84 tensors are equal\n"), 1) << equal.output;

  const Result different =
      redspine(fmt::format("checkpoint diff {} {}", trained("last"), trained("first")));
  EXPECT_EQ(different.exit_code, 1);
  EXPECT_EQ(count(different.output, "\ntraining.json: step: 120, 60\n"), 1) << different.output;
  EXPECT_EQ(count(different.output, "\ndifferent: 0 of 84 tensors are equal\n"), 1);
  EXPECT_TRUE(std::regex_search(
      different.output,
      std::regex(R"(\ntransformer\.wte\.weight +differs +[0-9.e-]+ +[0-9.e-]+\n)")))
      << different.output;
}

TEST(CheckpointCommand, ExportIsTheModelAlone) {
  const std::string exported = fresh("model");
  const Result result =
      redspine(fmt::format("checkpoint export {} --output {}", trained("last"), exported));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(read_model_bytes(exported), read_model_bytes(trained("last")));
  const auto digest_of = [](const std::string& directory) {
    const Result inspected = redspine("checkpoint inspect --json " + directory);
    return nlohmann::json::parse(inspected.output)["weights_digest"];
  };
  EXPECT_TRUE(digest_of(exported).is_string());
  EXPECT_EQ(digest_of(exported), digest_of(trained("last")));
  EXPECT_FALSE(fs::exists(exported + "/training.json"));
  const Result compared = redspine(fmt::format("checkpoint diff {} {}", exported, trained("last")));
  EXPECT_EQ(compared.exit_code, 0) << compared.output;
  EXPECT_EQ(count(compared.output,
                  "the optimizer's state: only in " + trained("last") + "; not compared\n"),
            1)
      << compared.output;
}

TEST(CheckpointCommand, TrainingGoesOnFromWhatImportMade) {
  const std::string theirs = fresh("theirs");
  const std::string imported = fresh("imported");
  ASSERT_EQ(redspine(fmt::format("checkpoint export {} --output {} --dtype bf16", trained("last"),
                                 theirs))
                .exit_code,
            0);
  const Result made = redspine(fmt::format("checkpoint import {} --output {}", theirs, imported));
  ASSERT_EQ(made.exit_code, 0) << made.output;
  EXPECT_EQ(read_model_bytes(imported), read_model_bytes(theirs));
  const Result run = on_ranks(
      2, fmt::format("train --config {} --set run.name=tuned train.steps=1 parallel.tensor=2 "
                     "train.eval_interval=0 checkpoint.initialize_from={}",
                     trained("run.yaml"), imported));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  std::smatch loss;
  ASSERT_TRUE(std::regex_search(run.output, loss, std::regex("step 1/1  loss ([0-9.]+)")))
      << run.output;
  EXPECT_LT(std::stod(loss[1]), 3.5);  // ln 257 = 5.5 with new weights
}

TEST(CheckpointCommand, AModelThatTransformersDoesNotKnowIsExportedWithAWarning) {
  const std::string source = fresh("source");
  ModelConfig config = small_model(Family::gpt2, 61);
  config.norm = NormKind::rmsnorm;
  write_model(source, {.config = config});
  const Result result =
      redspine(fmt::format("checkpoint export {} --output {}", source, fresh("model")));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(count(result.output, "warning: transformers has no model with these options"), 1);
}

TEST(CheckpointCommand, ProblemsAreNamedAndNothingIsMade) {
  const std::string last = trained("last");
  const std::string output = fresh("output");
  expect_problem("inspect", "directories given: 0; legal: 1");
  expect_problem("inspect a b", "directories given: 2; legal: 1");
  expect_problem("inspect /no/such", "/no/such: does not exist");
  expect_problem("verify /no/such", "/no/such: does not exist");
  expect_problem("diff " + last, "directories given: 1; legal: 2");
  expect_problem("export " + last, "--output DIR is missing");
  expect_problem("import --output " + output, "directories given to read from: 0; legal: 1");
  expect_problem(fmt::format("export {} --output {} --dtype fp8", last, output),
                 "--dtype: read \"fp8\"; legal: f32, bf16, f16");
  expect_problem(fmt::format("export {} --output {}", last, trained("first")),
                 "--output: " + trained("first") + ": is there already");
  expect_problem(fmt::format("import {} --output {}", trained("run"), output),
                 trained("run") + ": has no model.safetensors");
  expect_problem("inspect --jsno " + last, "--jsno: unknown option; nearest: --json");

  const std::string other = fresh("bert");
  write_model(other, {.config = small_model(Family::gpt2, 61)});
  std::ofstream(other + "/config.json") << R"({"model_type": "bert"})";
  expect_problem(fmt::format("import {} --output {}", other, output),
                 other + "/config.json: model_type: is bert; legal: gpt2, llama, redspine");
  EXPECT_FALSE(fs::exists(output));
  EXPECT_FALSE(fs::exists(output + ".partial"));
}

}  // namespace
}  // namespace redspine::testing
