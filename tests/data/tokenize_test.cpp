#include "data/tokenize.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "data/files/token_file.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/data/tokenize_run.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

std::vector<std::string> documents_of(const std::string& prefix) {
  const std::string end = "<|endoftext|>";
  const std::string text = text_of(prefix);
  std::vector<std::string> documents;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t stop = text.find(end, begin);
    documents.push_back(text.substr(begin, stop - begin));
    begin = stop + end.size();
  }
  return documents;
}

/// One document per line, `count` of them.
std::string many_documents(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "document " + std::to_string(i) + "\n\n";
  return text;
}

TEST(Tokenize, EndsEachDocumentWithEndOfText) {
  const Scratch scratch;
  const std::string text = scratch.write("a.txt", "Grüße\n");
  const std::string json = scratch.write("b.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  const TokenizeSummary summary = tokenize_bytes(
      {.input = {.inputs = {text, json}}, .output_prefix = scratch / "new/folder/out"});
  EXPECT_EQ(text_of(scratch / "new/folder/out"),
            "Grüße\n<|endoftext|>one<|endoftext|>two<|endoftext|>");
  EXPECT_EQ(summary.num_documents, 3);
  EXPECT_EQ(summary.num_bytes, 8 + 3 + 3);
  EXPECT_EQ(summary.num_tokens, summary.num_bytes + 3);
  EXPECT_GT(summary.seconds, 0.0);
  ASSERT_EQ(summary.outputs.size(), 1u);
  EXPECT_EQ(summary.outputs[0].prefix, scratch / "new/folder/out");
}

TEST(Tokenize, TakesTheFormatThatIsGivenOverTheName) {
  const Scratch scratch;
  const std::string path = scratch.write("a.jsonl", "{\"body\": \"x\"}");
  tokenize_bytes(
      {.input = {.inputs = {path}, .format = TextFormat::text}, .output_prefix = scratch / "out"});
  EXPECT_EQ(text_of(scratch / "out"), "{\"body\": \"x\"}<|endoftext|>");
  const std::string other = scratch.write("a.txt", "{\"body\": \"x\"}");
  tokenize_bytes({.input = {.inputs = {other}, .format = TextFormat::jsonl, .json_key = "body"},
                  .output_prefix = scratch / "out"});
  EXPECT_EQ(text_of(scratch / "out"), "x<|endoftext|>");
}

TEST(Tokenize, EncodesADocumentOfManyBlocks) {
  const Scratch scratch;
  std::string text;
  while (text.size() < 2'000'000) text += std::to_string(text.size()) + " ";
  tokenize_bytes(
      {.input = {.inputs = {scratch.write("a", text)}}, .output_prefix = scratch / "out"});
  EXPECT_EQ(text_of(scratch / "out"), text + "<|endoftext|>");
}

TEST(Tokenize, SplitsOffAStableShareForValidation) {
  const Scratch scratch;
  const std::string text = many_documents(2000);
  const TokenizeOptions options{
      .input = {.inputs = {scratch.write("a", text)}, .document_separator = ""},
      .output_prefix = scratch / "out",
      .validation_fraction = 0.1};
  const TokenizeSummary summary = tokenize_bytes(options);
  const std::vector<std::string> train = documents_of(scratch / "out_train");
  const std::vector<std::string> validation = documents_of(scratch / "out_validation");
  EXPECT_FALSE(std::filesystem::exists(scratch / "out.idx"));
  EXPECT_EQ(train.size() + validation.size(), 2000u);
  EXPECT_NEAR(static_cast<double>(validation.size()), 200.0, 60.0);
  ASSERT_EQ(summary.outputs.size(), 2u);
  EXPECT_EQ(summary.outputs[1].num_documents, static_cast<std::int64_t>(validation.size()));

  // Twice as many documents in another file and order: the old ones stay where they were.
  TokenizeOptions more = options;
  more.input.inputs = {scratch.write("b", "something else\n\n" + many_documents(4000))};
  tokenize_bytes(more);
  const std::vector<std::string> more_train = documents_of(scratch / "out_train");
  const std::set<std::string> train_set(more_train.begin(), more_train.end());
  for (const std::string& document : train) EXPECT_TRUE(train_set.contains(document));
  for (const std::string& document : validation) EXPECT_FALSE(train_set.contains(document));
}

TEST(Tokenize, RejectsASplitThatLeavesASetEmpty) {
  const Scratch scratch;
  const std::string message = config_error_of([&] {
    tokenize_bytes({.input = {.inputs = {scratch.write("a", "only one")}},
                    .output_prefix = scratch / "out",
                    .validation_fraction = 1e-9});
  });
  EXPECT_EQ(message, scratch / "out_validation" +
                         ": would get none of the 1 documents; a document separator makes more of "
                         "them");
  EXPECT_FALSE(std::filesystem::exists(scratch / "out_train.idx"));
}

TEST(Tokenize, NamesAllProblemsOfTheCallInOneGo) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "empty");
  const std::string message = config_error_of([&] {
    tokenize_bytes({.input = {.inputs = {scratch / "none", scratch / "empty"},
                              .json_key = "",
                              .document_separator = "a\nb"},
                    .output_prefix = "",
                    .shard_tokens = 0,
                    .validation_fraction = 1.0,
                    .num_threads = 0});
  });
  EXPECT_EQ(message,
            "--json-key: is empty; legal: the key of the text\n"
            "--document-separator: has a line break; legal: what one whole line holds, empty for "
            "blank lines\n"
            "--output: is \"\"; legal: a path that .bin and .idx are added to\n"
            "--shard-tokens: is 0; legal: 1 to 2147483647\n"
            "--validation-fraction: is 1; legal: 0 to below 1\n"
            "--threads: is 0; legal: 1 and above\n" +
                scratch / "none" + ": does not exist and as a glob matches nothing\n" +
                scratch / "empty" + ": is a folder without files");
}

TEST(Tokenize, GivesEmptyDocumentsTheirEndOfTextToo) {
  const Scratch scratch;
  tokenize_bytes(
      {.input = {.inputs = {scratch.write("a.jsonl", "{\"text\": \"\"}\n{\"text\": \"x\"}\n"),
                            scratch.write("b", "")}},
       .output_prefix = scratch / "out"});
  EXPECT_EQ(text_of(scratch / "out"), "<|endoftext|>x<|endoftext|><|endoftext|>");
}

TEST(Tokenize, WritesTheSameWhateverTheNumberOfThreads) {
  const Scratch scratch;
  std::string lines;
  for (int i = 0; i < 20'000; ++i) {
    lines += "{\"text\": \"" + std::string(static_cast<std::size_t>(i * 31 % 200), 'x') +
             std::to_string(i) + "\"}\n";
  }
  const std::vector<std::string> inputs = {scratch.write("a.jsonl", lines),
                                           scratch.write("b", many_documents(50'000))};
  for (const int num_threads : {1, 2, 5}) {
    tokenize_bytes({.input = {.inputs = inputs},
                    .output_prefix = scratch / std::to_string(num_threads),
                    .validation_fraction = 0.2,
                    .num_threads = num_threads});
    for (const std::string name : {"_train.bin", "_train.idx", "_validation.bin"}) {
      EXPECT_EQ(read_file(scratch / (std::to_string(num_threads) + name)),
                read_file(scratch / ("1" + name)));
    }
  }
}

TEST(Tokenize, PutsALongDocumentOnOneSideWhereverItLies) {
  const Scratch scratch;
  const std::string document = many_documents(40'000);  // longer than two batches
  for (const int before : {0, 1, 700, 20'000}) {
    std::string text;
    for (int i = 0; i < before; ++i) text += "a short one\n---\n";
    tokenize_bytes(
        {.input = {.inputs = {scratch.write("a", text + document + "\n---\nanother\n---\n" +
                                                     many_documents(3) + "---\nvalidate me 6")},
                   .document_separator = "---"},
         .output_prefix = scratch / "out",
         .validation_fraction = 0.5});
    const std::vector<std::string> train = documents_of(scratch / "out_train");
    const std::vector<std::string> validation = documents_of(scratch / "out_validation");
    const auto count = [&](const std::vector<std::string>& documents) {
      return std::count(documents.begin(), documents.end(), document + "\n");
    };
    EXPECT_EQ(count(train) + count(validation), 1) << before;
    static const std::int64_t first_answer = count(train);
    EXPECT_EQ(count(train), first_answer) << before;
  }
}

TEST(Tokenize, WritesShardsOfLlmcWithDocumentsThatRunOn) {
  const Scratch scratch;
  scratch.write("out_000007.bin", "of an older, longer run");
  scratch.write("out_000008.bin.partial", "of one that was interrupted");
  scratch.write("out_other.bin", "somebody else's");
  const TokenizeSummary summary = tokenize_bytes(
      {.input = {.inputs = {scratch.write("a", "0123456789ab"), scratch.write("b", "xyz")}},
       .output_prefix = scratch / "out",
       .output_format = OutputFormat::llmc,
       .shard_tokens = 5});
  EXPECT_EQ(summary.num_documents, 2);
  EXPECT_EQ(summary.num_tokens, 17);
  EXPECT_EQ(read_file(scratch / "out_000000.bin"),
            llmc_bytes<std::uint16_t>(20240520, 1, {'0', '1', '2', '3', '4'}));
  EXPECT_EQ(read_file(scratch / "out_000002.bin"),
            llmc_bytes<std::uint16_t>(20240520, 1, {'a', 'b', 256, 'x', 'y'}));
  EXPECT_EQ(read_file(scratch / "out_000003.bin"),
            llmc_bytes<std::uint16_t>(20240520, 1, {'z', 256}));
  EXPECT_EQ(find_token_files(scratch / "out_0*.bin", TokenFormat::automatic, "").size(), 4u);
  EXPECT_FALSE(std::filesystem::exists(scratch / "out_000008.bin.partial"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "out_other.bin"));
}

TEST(Tokenize, LeavesNoShardBehindAFailure) {
  const Scratch scratch;
  const std::string path = scratch.write("a.jsonl", "{\"text\": \"0123456789\"}\nno json");
  config_error_of([&] {
    tokenize_bytes({.input = {.inputs = {path}},
                    .output_prefix = scratch / "out",
                    .output_format = OutputFormat::llmc,
                    .shard_tokens = 3});
  });
  std::filesystem::remove(path);
  EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(Tokenize, ReportsHowFarItIs) {
  const Scratch scratch;
  const std::string pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream stream(pipe);
    for (int i = 0; i < 30; ++i) {
      stream << std::string(100'000, 'x') << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
  });
  std::vector<InputProgress> reports;
  tokenize_bytes({.input = {.inputs = {pipe}},
                  .output_prefix = scratch / "out",
                  .report = [&](const InputProgress& progress) { reports.push_back(progress); }});
  writer.join();
  ASSERT_GE(reports.size(), 2u);
  // However long it takes: a fifth of a second apart.
  EXPECT_GT(reports.back().seconds, 0.19 * static_cast<double>(reports.size()));
  EXPECT_LT(reports.front().num_bytes, reports.back().num_bytes);
  EXPECT_EQ(reports.back().total_bytes, -1);
  EXPECT_GT(reports.back().seconds, reports.front().seconds);
}

}  // namespace
}  // namespace redspine
