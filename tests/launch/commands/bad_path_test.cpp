// Paths that the system does not follow, on the command line of every command: a folder that nobody
// may enter, a link to itself, a name that is too long, bytes that are no text. Each is a problem
// of the user's, told with its cause, and nothing is written.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/bad_paths.h"
#include "tests/support/command_line.h"
#include "tests/support/job.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

class BadPaths : public ::testing::Test {
 protected:
  BadPaths() { make_obstacles(run_.path("")); }
  ~BadPaths() override { fs::permissions(run_.path("closed"), fs::perms::all); }

  /// Runs the command with each of the paths for PATH; DIR is the run's folder.
  void expect_rejected(const std::string& words) const {
    std::vector<BadPath> paths = bad_paths();
    paths.push_back({"caf\xe9", "has the byte 0xe9 at "});
    for (const BadPath& bad : paths) {
      SCOPED_TRACE(words + " with " + bad.cause);
      const std::string command =
          replace_all(replace_all(words, "PATH", "DIR/" + bad.path), "DIR", run_.path(""));
      const Result result = shell(unprivileged(REDSPINE_BINARY " " + command));
      EXPECT_EQ(result.exit_code, 2) << result.output;
      EXPECT_EQ(count(result.output, bad.cause), 1) << result.output;
      EXPECT_EQ(count(result.output, "filesystem error"), 0) << result.output;
      EXPECT_EQ(count(result.output, "\xe9"), 0) << result.output;
    }
    EXPECT_FALSE(fs::exists(run_.path("new")));
    EXPECT_FALSE(fs::exists(run_.path("runs")));
  }

 private:
  static std::string replace_all(std::string text, const std::string& part, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size()) {
      text.replace(at, part.size(), by);
    }
    return text;
  }

  TinyRun run_;
};

TEST_F(BadPaths, AreRejectedByTrainTraceAndBench) {
  expect_rejected("train --config PATH");
  expect_rejected("trace --step 1 --config PATH");
  expect_rejected("bench --config PATH");
}

TEST_F(BadPaths, AreRejectedByTokenize) {
  expect_rejected("tokenize PATH --output DIR/new");
  expect_rejected("tokenize DIR/text --output PATH");
  expect_rejected("tokenize DIR/text --output PATH --output-format llmc");
  expect_rejected("tokenize DIR/text --output DIR/new --tokenizer PATH");
  expect_rejected("tokenize DIR/text --train-bpe --vocab-size 300 --save-tokenizer PATH");
  expect_rejected("tokenize --inspect PATH");
  expect_rejected("tokenize --verify PATH --vocab-size 300");
}

TEST_F(BadPaths, AreRejectedByWhatReadsACheckpoint) {
  expect_rejected("sample --checkpoint PATH");
  expect_rejected("evaluate --checkpoint PATH --data DIR/tokens");
  expect_rejected("checkpoint inspect PATH");
  expect_rejected("checkpoint verify PATH");
  expect_rejected("checkpoint diff PATH DIR");
  expect_rejected("checkpoint export PATH --output DIR/new");
  expect_rejected("checkpoint import PATH --output DIR/new");
}

}  // namespace
}  // namespace redspine::testing
