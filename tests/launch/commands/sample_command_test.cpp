// `redspine sample` on what training has left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/launch/commands/trained.h"
#include "tests/support/command_line.h"
#include "tests/support/model_files.h"

namespace redspine::testing {
namespace {

std::string sample(const std::string& more) {
  return fmt::format("sample --checkpoint {} {}", trained("last"), more);
}

/// What `words` writes on one rank.
std::string text_of(const std::string& words) {
  const Result result = redspine(words);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return result.output;
}

void expect_problem(const std::string& words, const std::string& part) {
  const Result result = redspine(words);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, part), 1) << part << " in\n" << result.output;
}

TEST(SampleCommand, ContinuesThePromptWithAsManyTokensAsAreAsked) {
  const std::string text = text_of(sample("--prompt 'The sq' --tokens 9 --greedy"));
  EXPECT_EQ(text.size(), 6U + 9U + 1U) << text;
  EXPECT_TRUE(text.starts_with("The sq")) << text;
  EXPECT_TRUE(text.ends_with('\n')) << text;
  EXPECT_EQ(text_of(sample("--prompt 'The sq' --tokens 0")), "The sq\n");
}

TEST(SampleCommand, HasLearntFromItsText) {
  EXPECT_NE(text_of(sample("--prompt 'The squ' --tokens 12 --greedy")).find("The square of"),
            std::string::npos);
}

TEST(SampleCommand, TheTextIsTheSameOnAnyNumberOfRanks) {
  for (const std::string more :
       {"--prompt The --tokens 50 --greedy", "--prompt The --tokens 50 --seed 3 --top-k 20"}) {
    const std::string alone = text_of(sample(more));
    // Three ranks cannot share four heads, so each has a model of its own.
    for (const int num_ranks : {2, 3, 4}) {
      const Result result = on_ranks(num_ranks, sample(more) + " 2>/dev/null");
      EXPECT_EQ(result.exit_code, 0);
      EXPECT_EQ(result.output, alone) << num_ranks << " ranks";
    }
  }
}

TEST(SampleCommand, TheSeedAloneDecidesWhichTextIsDrawn) {
  const std::string first = text_of(sample("--tokens 30 --seed 1"));
  EXPECT_EQ(text_of(sample("--tokens 30 --seed 1")), first);
  EXPECT_NE(text_of(sample("--tokens 30 --seed 2")), first);
}

TEST(SampleCommand, TemperatureZeroAndTopOneAreGreedy) {
  const std::string greedy = text_of(sample("--prompt The --tokens 20 --greedy"));
  EXPECT_EQ(text_of(sample("--prompt The --tokens 20 --temperature 0")), greedy);
  EXPECT_EQ(text_of(sample("--prompt The --tokens 20 --top-k 1")), greedy);
}

TEST(SampleCommand, GoesOnBeyondTheLengthOfTheModel) {
  // 32 tokens is all it sees; the end of a document may come before.
  const std::string text = text_of(sample(
      "--prompt 'The square of 17 is no king.The square of 18 is no k' --tokens 3 --greedy"));
  EXPECT_GT(text.size(), 51U);
}

TEST(SampleCommand, SamplesAModelOfTransformers) {
  const std::string theirs = fresh("theirs");
  write_model(theirs, {.config = small_model(Family::llama, 257), .num_files = 2});
  const std::string words =
      fmt::format("sample --checkpoint {} --prompt ab --tokens 5 --greedy", theirs);
  const std::string alone = text_of(words);
  EXPECT_TRUE(alone.starts_with("ab"));
  const Result result = on_ranks(2, words);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, alone);
}

TEST(SampleCommand, ProblemsAreNamed) {
  expect_problem("sample", "--checkpoint DIR is missing");
  expect_problem("sample --checkpoint /no/such", "--checkpoint: /no/such: does not exist");
  expect_problem(sample("--temperature=-1"), "--temperature: is -1; legal: 0 and more");
  expect_problem(sample("--temperature nan"), "--temperature: is nan; legal: 0 and more");
  expect_problem(sample("--top-k=-2"), "--top-k: is -2; legal: 0 and more");
  expect_problem(sample("--tokens=-2"), "--tokens: is -2; legal: 0 and more");
  expect_problem(sample("--tokens many"), "'many'");
  expect_problem(sample("--tokenizer words"), "--tokenizer: words: ");
  expect_problem(sample("stray"), "stray: belongs to no option");
}

TEST(SampleCommand, AProblemIsToldOnceByAllRanks) {
  const Result result = on_ranks(2, "sample --checkpoint /no/such");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "/no/such: does not exist"), 1) << result.output;
}

TEST(SampleCommand, TokensThatAreNoBytesAreNotShownAsBytes) {
  const std::string theirs = fresh("theirs");
  write_model(theirs, {.config = small_model(Family::gpt2, 300)});
  const std::string words = "sample --tokens 3 --prompt ab --checkpoint " + theirs;
  expect_problem(words, "--tokenizer: is not given, and " + theirs + " does not say");
  EXPECT_TRUE(text_of(words + " --tokenizer bytes").starts_with("ab"));
  std::ofstream(theirs + "/tokenizer.json") << "{}";
  expect_problem(words, "--tokenizer: " + theirs + "/tokenizer.json: ");
}

TEST(SampleCommand, WeightsThatAreMissingAreNamedByOneRankAndEndAll) {
  const std::string theirs = fresh("theirs");
  write_model(theirs, {.config = small_model(Family::gpt2, 257)});
  ModelConfig deeper = small_model(Family::gpt2, 257);
  deeper.num_layers = 3;
  const std::string other = fresh("deeper");
  write_model(other, {.config = deeper});
  std::filesystem::copy_file(other + "/config.json", theirs + "/config.json",
                             std::filesystem::copy_options::overwrite_existing);
  const Result result = on_ranks(2, "sample --checkpoint " + theirs);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(count(result.output, "tensor transformer.h.2.ln_1.weight of shape [32]: is missing"), 1)
      << result.output;
}

}  // namespace
}  // namespace redspine::testing
