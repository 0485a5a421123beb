// `redspine evaluate` on what training has left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/launch/commands/trained.h"
#include "tests/support/command_line.h"
#include "tests/support/model_files.h"

namespace redspine::testing {
namespace {

std::string evaluate(const std::string& more) {
  return fmt::format("evaluate --checkpoint {} --data {} {}", trained("last"), trained("tokens"),
                     more);
}

nlohmann::json json_of(const Result& result) {
  EXPECT_EQ(result.exit_code, 0) << result.output;
  auto json = nlohmann::json::parse(result.output, nullptr, false);
  EXPECT_TRUE(json.is_object()) << result.output;
  return json;
}

/// The validation loss that training saw at its last step.
double loss_of_training() {
  std::ifstream file(trained("metrics.jsonl"));
  double loss = 0.0;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["kind"] == "validation" && json["step"] == 120) loss = json["loss"].get<double>();
  }
  return loss;
}

void expect_problem(const std::string& words, const std::string& part) {
  const Result result = redspine(words);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, part), 1) << part << " in\n" << result.output;
}

TEST(EvaluateCommand, FindsTheLossThatTrainingSawOnAnyLayout) {
  const double expected = loss_of_training();
  EXPECT_GT(expected, 0.1);
  const auto loss = [](const Result& result) { return json_of(result)["loss"].get<double>(); };
  EXPECT_NEAR(loss(redspine(evaluate("--json"))), expected, 1e-6 * expected);
  EXPECT_NEAR(loss(redspine(evaluate("--json --batch-size 3"))), expected, 1e-6 * expected);
  EXPECT_NEAR(loss(on_ranks(2, evaluate("--json"))), expected, 1e-6 * expected);
  EXPECT_NEAR(loss(on_ranks(2, evaluate("--json --tensor 2"))), expected, 1e-6 * expected);
}

TEST(EvaluateCommand, CountsEachTokenOnceAndSpreadsThemOverTheBytesOfTheText) {
  const nlohmann::json json = json_of(redspine(evaluate("--json")));
  // Documents are joined: "...\n" and an end of text each; the very first byte is no target.
  std::ifstream file(trained("text"));
  std::int64_t num_bytes = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) num_bytes += static_cast<std::int64_t>(line.size()) + 1;
  }
  EXPECT_EQ(json["bytes"], num_bytes - 1);
  EXPECT_EQ(json["tokens"], num_bytes + kNumDocuments - 1);
  EXPECT_EQ(json["sequence_length"], 24);  // that of training, not the longest possible
  const double loss = json["loss"].get<double>();
  EXPECT_DOUBLE_EQ(json["perplexity"].get<double>(), std::exp(loss));
  EXPECT_DOUBLE_EQ(
      json["bits_per_byte"].get<double>(),
      loss * json["tokens"].get<double>() / std::log(2.0) / json["bytes"].get<double>());
}

TEST(EvaluateCommand, ShowsTheSameToPeople) {
  const Result result = redspine(evaluate(""));
  EXPECT_EQ(result.exit_code, 0);
  for (const std::string part : {"tokens  ", "\nloss  ", "\nperplexity  ", "\nbits per byte  "}) {
    EXPECT_EQ(count(result.output, part), 1) << part << " in\n" << result.output;
  }
}

TEST(EvaluateCommand, ALongerContextPredictsBetter) {
  const auto loss = [](const std::string& more) {
    return json_of(redspine(evaluate("--json " + more)))["loss"].get<double>();
  };
  EXPECT_LT(loss("--sequence-length 24"), loss("--sequence-length 2"));
}

TEST(EvaluateCommand, TokensThatAreNoBytesHaveNoBitsAByte) {
  const std::string theirs = fresh("theirs");
  write_model(theirs, {.config = small_model(Family::llama, 61)});
  const std::string data = fresh("ids");
  std::ofstream(data) << std::string("\1\0\2\0\3\0\60\0\5\0", 10);
  const nlohmann::json json = json_of(redspine(fmt::format(
      "evaluate --checkpoint {} --data {} --format raw_u16 --json 2>/dev/null", theirs, data)));
  EXPECT_EQ(json["tokens"], 4);
  EXPECT_NEAR(json["loss"].get<double>(), std::log(61.0), 0.5);
  EXPECT_TRUE(json["bytes"].is_null());
  EXPECT_TRUE(json["bits_per_byte"].is_null());
}

TEST(EvaluateCommand, SaysWhyItDoesNotKnowTheBytes) {
  const std::string copy = fresh("copy");
  std::filesystem::copy(trained("last"), copy);
  const std::string words =
      fmt::format("evaluate --no-verify --checkpoint {} --data {}", copy, trained("tokens"));
  std::string record = read_file(copy + "/training.json");
  const std::string empty = R"("data.tokenizer": "\"\"")";
  ASSERT_NE(record.find(empty), std::string::npos);
  record.replace(record.find(empty), empty.size(), R"("data.tokenizer": "\"gone.json\"")");
  std::ofstream(copy + "/training.json") << record;
  const Result result = redspine(words);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(count(result.output, "\nbits per byte  not known: --tokenizer: gone.json: "), 1)
      << result.output;
  const Result json = redspine(words + " --json");
  EXPECT_EQ(count(json.output, "warning: bits per byte are not known: --tokenizer: gone.json: "), 1)
      << json.output;
}

TEST(EvaluateCommand, ProblemsAreNamed) {
  const std::string checkpoint = "evaluate --checkpoint " + trained("last");
  expect_problem("evaluate --data x", "--checkpoint is missing");
  expect_problem(checkpoint, "--data is missing");
  expect_problem(checkpoint + " --data /no/such", "--data: /no/such: ");
  expect_problem(evaluate("--format xml"), "--format: ");
  expect_problem(evaluate("--sequence-length 33"), "--sequence-length: is 33; legal: 1 to 32");
  expect_problem(evaluate("--batch-size 0"), "--batch-size: is 0; legal: 1 to ");
  expect_problem(evaluate("--tensor 2"), "--tensor: is 2; legal for 1 rank and 4 heads: 1");
  expect_problem(evaluate("--tokenizer words"), "--tokenizer: words: ");
  const std::string theirs = fresh("theirs");
  write_model(theirs, {.config = small_model(Family::gpt2, 61)});
  expect_problem(fmt::format("evaluate --checkpoint {} --data {}", theirs, trained("tokens")),
                 "--data: ");
  const Result result = on_ranks(2, evaluate("--tensor 3"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "--tensor: is 3; legal for 2 ranks and 4 heads: 1, 2"), 1)
      << result.output;
}

}  // namespace
}  // namespace redspine::testing
