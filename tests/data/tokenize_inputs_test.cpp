// What tokenize() takes for text, and what it rejects: kinds of files, archives, bad lines.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/data/documents/compressed.h"
#include "tests/data/tokenize_run.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

TEST(Tokenize, RejectsInputsWithoutADocument) {
  const Scratch scratch;
  EXPECT_EQ(config_error_of([&] {
              tokenize_bytes({.input = {.inputs = {scratch.write("a.jsonl", "\n\n")}},
                              .output_prefix = scratch / "out"});
            }),
            scratch / "out" + ": would get none of the 0 documents");
}

TEST(Tokenize, PublishesNothingAfterABadLine) {
  const Scratch scratch;
  const std::string path = scratch.write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": 1}\n");
  EXPECT_EQ(
      config_error_of([&] {
        tokenize_bytes(
            {.input = {.inputs = {path}}, .output_prefix = scratch / "out", .num_threads = 2});
      }),
      path + ":2: \"text\" is of JSON type number; legal: string");
  for (const char* name : {"out.bin", "out.idx", "out.bin.partial", "out.idx.partial"}) {
    EXPECT_FALSE(std::filesystem::exists(scratch / name)) << name;
  }
}

TEST(Tokenize, SkipsInvalidLinesWhereItIsToldToAndCountsThem) {
  const Scratch scratch;
  const std::string path =
      scratch.write("a.jsonl", "{\"text\": \"x\"}\nno json\n\n{\"text\": 1}\n{\"text\": \"y\"}");
  const TokenizeSummary summary =
      tokenize_bytes({.input = {.inputs = {path}, .invalid_lines = InvalidLines::skip},
                      .output_prefix = scratch / "out"});
  EXPECT_EQ(text_of(scratch / "out"), "x<|endoftext|>y<|endoftext|>");
  EXPECT_EQ(summary.skipped.count, 2);
  EXPECT_TRUE(summary.skipped.first.starts_with(path + ":2: is no JSON ("))
      << summary.skipped.first;
}

TEST(Tokenize, TakesTheFilesOfAnArchiveAsThoseOfAFolder) {
  const Scratch scratch;
  const std::string archive =
      tar({{"b.txt", "one"}, {"a.JSONL", "{\"text\": \"two\"}\n{\"text\": \"three\"}"}});
  tokenize_bytes(
      {.input = {.inputs = {scratch.write("a.tgz", gzip(archive)), scratch.write("z", "four")}},
       .output_prefix = scratch / "out"});
  EXPECT_EQ(text_of(scratch / "out"),
            "one<|endoftext|>two<|endoftext|>three<|endoftext|>four<|endoftext|>");
  const std::string bad =
      scratch.write("bad.zip", zip({{"a.jsonl", "{\"text\": \"x\"}\nno json"}}));
  EXPECT_TRUE(config_error_of([&] {
                tokenize_bytes({.input = {.inputs = {bad}}, .output_prefix = scratch / "out"});
              }).starts_with(bad + ": a.jsonl:2: is no JSON ("));
}

TEST(Tokenize, KnowsJsonLinesByNameWhateverItsCaseAndCompression) {
  const Scratch scratch;
  const std::string line = "{\"text\": \"x\"}\n";
  for (const char* name : {"a.jsonl", "a.JSONL", "a.ndjson", "a.json", "a.Json", "a.json.gz",
                           "a.jsonl.ZST", "a.jsonl.xz", "a.ndjson.bz2"}) {
    tokenize_bytes(
        {.input = {.inputs = {scratch.write(name, line)}}, .output_prefix = scratch / "out"});
    EXPECT_EQ(text_of(scratch / "out"), "x<|endoftext|>") << name;
  }
  tokenize_bytes(
      {.input = {.inputs = {scratch.write("jsonl", line)}}, .output_prefix = scratch / "out"});
  EXPECT_EQ(text_of(scratch / "out"), line + "<|endoftext|>");
}

TEST(Tokenize, DoesNotReadWhatAnEarlierCallWrote) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "in");
  scratch.write("in/a", "one");
  for (const OutputFormat format : {OutputFormat::megatron, OutputFormat::llmc}) {
    const TokenizeOptions options{.input = {.inputs = {scratch / "in"}},
                                  .output_prefix = scratch / "in/out",
                                  .output_format = format,
                                  .shard_tokens = 2};
    EXPECT_TRUE(tokenize_bytes(options).left_out.empty());
    const TokenizeSummary again = tokenize_bytes(options);
    EXPECT_EQ(again.num_documents, 1);
    EXPECT_EQ(again.left_out.size(), 2u);
    for (const std::string& path : again.left_out) std::filesystem::remove(path);
  }
  // Those of another call are told, not taken for text: none of both halves is left out alone.
  tokenize_bytes({.input = {.inputs = {scratch / "in"}}, .output_prefix = scratch / "in/other"});
  EXPECT_NE(config_error_of([&] {
              tokenize_bytes(
                  {.input = {.inputs = {scratch / "in"}}, .output_prefix = scratch / "in/out"});
            }).find("in/other.idx: is the .idx of token files"),
            std::string::npos);
}

TEST(Tokenize, RejectsAFileThatIsNoTextBeforeAnythingIsWritten) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "in");
  scratch.write("in/a", "one");
  scratch.write("in/b.parquet", "PAR1\x15");
  scratch.write("in/c", "\xff\xfeT");
  const std::string message = config_error_of([&] {
    tokenize_bytes({.input = {.inputs = {scratch / "in"}}, .output_prefix = scratch / "new/out"});
  });
  EXPECT_NE(message.find("in/b.parquet: is a Parquet file"), std::string::npos) << message;
  EXPECT_NE(message.find("in/c: is text in UTF-16"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(scratch / "new"));
}

}  // namespace
}  // namespace redspine
