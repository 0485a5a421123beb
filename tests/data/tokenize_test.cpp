#include "data/tokenize.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <vector>

#include "data/token_file.h"
#include "data/tokenizer.h"
#include "tests/data/scratch.h"

namespace redspine {
namespace {

/// The text of a pair, with the ends of text visible.
std::string text_of(const std::string& prefix) {
  const TokenFile file = TokenFile::open(prefix, TokenFormat::automatic, "");
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.num_tokens()));
  file.read(0, tokens, ByteTokenizer::kVocabSize);
  return ByteTokenizer().decode(tokens);
}

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

/// A document a line, `count` of them.
std::string many_documents(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "document " + std::to_string(i) + "\n\n";
  return text;
}

TEST(Tokenize, EndsEachDocumentWithEndOfText) {
  const Scratch scratch;
  const std::string text = scratch.write("a.txt", "Grüße\n");
  const std::string json = scratch.write("b.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  const TokenizeSummary summary =
      tokenize({.inputs = {text, json}, .output_prefix = scratch / "new/folder/out"});
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
  tokenize({.inputs = {path}, .output_prefix = scratch / "out", .format = TextFormat::text});
  EXPECT_EQ(text_of(scratch / "out"), "{\"body\": \"x\"}<|endoftext|>");
  const std::string other = scratch.write("a.txt", "{\"body\": \"x\"}");
  tokenize({.inputs = {other},
            .output_prefix = scratch / "out",
            .format = TextFormat::jsonl,
            .json_key = "body"});
  EXPECT_EQ(text_of(scratch / "out"), "x<|endoftext|>");
}

TEST(Tokenize, EncodesADocumentOfManyBlocks) {
  const Scratch scratch;
  std::string text;
  while (text.size() < 200'000) text += std::to_string(text.size()) + " ";
  tokenize({.inputs = {scratch.write("a", text)}, .output_prefix = scratch / "out"});
  EXPECT_EQ(text_of(scratch / "out"), text + "<|endoftext|>");
}

TEST(Tokenize, SplitsOffAStableShareForValidation) {
  const Scratch scratch;
  const std::string text = many_documents(2000);
  const TokenizeOptions options{.inputs = {scratch.write("a", text)},
                                .output_prefix = scratch / "out",
                                .document_separator = "",
                                .validation_fraction = 0.1};
  const TokenizeSummary summary = tokenize(options);
  const std::vector<std::string> train = documents_of(scratch / "out_train");
  const std::vector<std::string> validation = documents_of(scratch / "out_validation");
  EXPECT_FALSE(std::filesystem::exists(scratch / "out.idx"));
  EXPECT_EQ(train.size() + validation.size(), 2000u);
  EXPECT_NEAR(static_cast<double>(validation.size()), 200.0, 60.0);
  ASSERT_EQ(summary.outputs.size(), 2u);
  EXPECT_EQ(summary.outputs[1].num_documents, static_cast<std::int64_t>(validation.size()));

  // Twice as many documents in another file and order: the old ones stay where they were.
  TokenizeOptions more = options;
  more.inputs = {scratch.write("b", "something else\n\n" + many_documents(4000))};
  tokenize(more);
  const std::vector<std::string> more_train = documents_of(scratch / "out_train");
  const std::set<std::string> train_set(more_train.begin(), more_train.end());
  for (const std::string& document : train) EXPECT_TRUE(train_set.contains(document));
  for (const std::string& document : validation) EXPECT_FALSE(train_set.contains(document));
}

TEST(Tokenize, RefusesASplitThatLeavesASetEmpty) {
  const Scratch scratch;
  const std::string message = config_error_of([&] {
    tokenize({.inputs = {scratch.write("a", "only one")},
              .output_prefix = scratch / "out",
              .validation_fraction = 1e-9});
  });
  EXPECT_EQ(message, scratch / "out_validation" +
                         ": would get none of the 1 documents that are not empty; a document "
                         "separator makes more of them");
  EXPECT_FALSE(std::filesystem::exists(scratch / "out_train.idx"));
}

TEST(Tokenize, RefusesInputsWithoutADocument) {
  const Scratch scratch;
  EXPECT_EQ(config_error_of([&] {
              tokenize({.inputs = {scratch.write("a", "")}, .output_prefix = scratch / "out"});
            }),
            scratch / "out" + ": would get none of the 0 documents that are not empty");
}

TEST(Tokenize, PublishesNothingAfterABadLine) {
  const Scratch scratch;
  const std::string path = scratch.write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": 1}\n");
  EXPECT_EQ(
      config_error_of([&] { tokenize({.inputs = {path}, .output_prefix = scratch / "out"}); }),
      path + ":2: \"text\" is of JSON type number; legal: string");
  for (const char* name : {"out.bin", "out.idx", "out.bin.partial", "out.idx.partial"}) {
    EXPECT_FALSE(std::filesystem::exists(scratch / name)) << name;
  }
}

TEST(Tokenize, NamesAllMistakesOfTheCallInOneGo) {
  const Scratch scratch;
  const std::string message = config_error_of([&] {
    tokenize({.inputs = {scratch / "none", scratch / ""},
              .output_prefix = "",
              .json_key = "",
              .document_separator = "a\nb",
              .validation_fraction = 1.0});
  });
  EXPECT_EQ(message,
            "--output: is \"\"; legal: a path that .bin and .idx are added to\n"
            "--json-key: is empty; legal: the key of the text\n"
            "--validation-fraction: is 1; legal: 0 to below 1\n"
            "--document-separator: has a line break; legal: what one whole line holds, empty for "
            "a blank line\n" +
                scratch / "none" + ": does not exist\n" + scratch / "" +
                ": is a folder; legal: a file");
}

}  // namespace
}  // namespace redspine
