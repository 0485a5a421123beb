// Token files that are not what they were when the checkpoint was saved: a run that resumes says
// which, and goes on.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

class ChangedData : public ::testing::Test {
 protected:
  ChangedData() {
    scene_.edit("[{path: train.u16}]", "[{path: \"train*.u16\"}]");
    scene_.write_tokens("train_more.u16", 2000);
    EXPECT_EQ(scene_.run(Scene::on_ranks(1, Scene::train())).exit_code, 0);
  }

  /// What is told of the data when the run goes on, without the hashes.
  std::vector<std::string> told_at_resume() const {
    const Ended ended =
        scene_.run(Scene::on_ranks(2, Scene::train("--set train.steps=6 train.eval_interval=2")));
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_NE(ended.output.find("resuming from"), std::string::npos) << ended.output;
    std::vector<std::string> lines = told(ended);
    std::erase_if(lines, [](const std::string& line) {
      return line.find("warning: data.") == std::string::npos;
    });
    return lines;
  }

  static void expect_lines(const std::vector<std::string>& lines,
                           const std::vector<std::string>& patterns) {
    ASSERT_EQ(lines.size(), patterns.size()) << fmt::format("{}", fmt::join(lines, "\n"));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_TRUE(matches(lines[i], "[rank 0 @ *] warning: " + patterns[i])) << lines[i];
    }
  }

  const Scene scene_;
};

TEST_F(ChangedData, IsNoneWhereTheFilesAreTheSame) { expect_lines(told_at_resume(), {}); }

TEST_F(ChangedData, IsToldFileByFile) {
  scene_.write("train.u16", std::string(9000, '\0'));
  scene_.write("train_more.u16", std::string(4000, '\0'));
  scene_.write_tokens("train_new.u16", 100);
  scene_.write_tokens("validation.u16", 500);
  expect_lines(
      told_at_resume(),
      {"data.train: train.u16: 8000 bytes -> 9000 bytes (grown: other samples come next)",
       "data.train: train_more.u16: hash * -> * (replaced: other samples come next)",
       "data.train: train_new.u16: none -> 200 bytes (added: other samples come next)",
       "data.validation: validation.u16: 1200 bytes -> 1000 bytes (shrunk: the validation loss is "
       "that of other tokens)"});
}

TEST_F(ChangedData, IsToldOfAFileThatIsGone) {
  std::filesystem::remove(scene_.path("train_more.u16"));
  expect_lines(
      told_at_resume(),
      {"data.train: train_more.u16: 4000 bytes -> none (removed: other samples come next)"});
}

}  // namespace
}  // namespace redspine::testing
