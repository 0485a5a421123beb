// One rank fails and the others do not: the whole job ends within seconds, names the rank and the
// cause, and leaves no process behind. Rank 1 differs by its working directory, where all paths of
// the configuration begin, as hosts differ that have no more in common than the run's directory.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <charconv>
#include <csignal>
#include <fstream>

#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxSeconds = 30.0;
constexpr const char* kEndless = "--set train.steps=10000000 schedule.decay_steps=10000000";

/// A scene whose folder `other` holds the same once more, but for runs.
class LoneFailure : public ::testing::Test {
 protected:
  LoneFailure() {
    add_other();
    fs::create_directory_symlink("../runs", scene_.path("other/runs"));
  }

  void add_other() const {
    fs::create_directories(scene_.path("other"));
    for (const char* name : {"config.yaml", "train.u16", "validation.u16"}) {
      fs::copy_file(scene_.path(name), scene_.path("other") / name,
                    fs::copy_options::overwrite_existing);
    }
  }

  /// Rank 1 works in `other`; `shell` is what comes before the program there, in single quotes.
  static std::string two_ranks(const std::string& words, const std::string& shell = "") {
    return Scene::on_ranks(1, fmt::format("{} : -n 1 --wdir other sh -c '{} exec {}'",
                                          Scene::train(words), shell, Scene::train(words)));
  }

  /// In place, so that who has it open reads the new tokens.
  void overwrite(const std::string& name) const {
    std::fstream file(scene_.path(name), std::ios::binary | std::ios::in | std::ios::out);
    file << std::string(fs::file_size(scene_.path(name)), '\0');
  }

  void wait_for_step(std::size_t step) const {
    wait_until([&] { return scene_.metrics("runs/run").size() >= step; });
  }

  /// One line, from `rank`, and an end in time.
  static void expect_failed(int rank, const std::string& cause, const Ended& ended) {
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_TRUE(ended.left_behind.empty()) << fmt::format("{}", ended.left_behind);
    const std::vector<std::string> lines = told(ended);
    const std::string pattern = fmt::format("[rank {} @ *] {}", rank, cause);
    EXPECT_TRUE(lines.size() == 1 && matches(lines.front(), pattern))
        << ended.errors << "\nexpected\n"
        << pattern;
  }

  const Scene scene_;
};

TEST_F(LoneFailure, AFileThatOneRankLacksIsToldByThatRank) {
  fs::remove(scene_.path("other/train.u16"));
  expect_told_by(1, {"config.yaml:13:18: data.train[0].path: train.u16: does not exist *"},
                 scene_.run(two_ranks("")));
  EXPECT_FALSE(fs::exists(scene_.path("runs")));
}

TEST_F(LoneFailure, AFileThatIsDamagedOnOneRankIsToldByThatRank) {
  scene_.write("other/train.u16", "odd");
  expect_told_by(1, {"config.yaml:13:18: data.train[0].path: train.u16: is 3 bytes; *"},
                 scene_.run(two_ranks("")));
  EXPECT_FALSE(fs::exists(scene_.path("runs")));
}

TEST_F(LoneFailure, AConfigurationThatDiffersOnOneRankIsNamed) {
  const std::string config = scene_.read("config.yaml");
  scene_.write("other/config.yaml", replaced(config, "hidden_size: 32", "hidden_size: 64"));
  expect_told_by(0,
                 {"the configuration differs between ranks: \"  hidden_size: 32\" on rank 0, \"  "
                  "hidden_size: 64\" on rank 1"},
                 scene_.run(two_ranks("")));
  EXPECT_FALSE(fs::exists(scene_.path("runs")));
}

// Each would be valid alone; together, the ranks would wait for batches that the others never make.
TEST_F(LoneFailure, AFileThatIsShorterOnOneRankIsNamed) {
  for (const std::string name : {"train.u16", "validation.u16"}) {
    add_other();
    const std::uintmax_t size = fs::file_size(scene_.path(name));
    fs::resize_file(scene_.path("other") / name, size / 2);
    expect_told_by(0,
                   {fmt::format("the data differs between ranks: \"{}: {} tokens\" on rank 0, "
                                "\"{}: {} tokens\" on rank 1",
                                name, size / 2, name, size / 4)},
                   scene_.run(two_ranks("--set parallel.tensor=2")));
    EXPECT_FALSE(fs::exists(scene_.path("runs")));
  }
}

TEST_F(LoneFailure, AFileThatOneRankHasMoreIsNamed) {
  scene_.edit("[{path: train.u16}]", "[{path: \"*.u16\"}]");
  scene_.edit("[{path: validation.u16}]", "[]");
  scene_.edit("eval_interval: 2", "eval_interval: 0");
  add_other();
  scene_.write_tokens("other/zzz.u16", 100);
  expect_told_by(0,
                 {"the data differs between ranks: \"\" on rank 0, \"zzz.u16: 100 tokens\" on "
                  "rank 1"},
                 scene_.run(two_ranks("")));
}

TEST_F(LoneFailure, AFileOfTheSameLengthWithOtherTokensOnOneRankIsNamed) {
  for (const std::string name : {"train.u16", "validation.u16"}) {
    add_other();
    overwrite("other/" + name);
    const std::string file =
        fmt::format("\"{}: {} bytes, hash *\" on rank", name, fs::file_size(scene_.path(name)));
    expect_told_by(0, {fmt::format("the data differs between ranks: {} 0, {} 1", file, file)},
                   scene_.run(two_ranks("")));
    EXPECT_FALSE(fs::exists(scene_.path("runs")));
  }
}

TEST_F(LoneFailure, AFileOfOtherTokensOnOneRankIsNotEvaluated) {
  EXPECT_EQ(scene_.run(Scene::on_ranks(1, Scene::train())).exit_code, 0);
  overwrite("other/validation.u16");
  const std::string evaluate =
      Scene::redspine(fmt::format("evaluate --checkpoint {} --data validation.u16 --format raw_u16",
                                  scene_.path("runs/run/checkpoints/step_00000004").string()));
  const Ended ended =
      scene_.run(Scene::on_ranks(1, fmt::format("{} : -n 1 --wdir other {}", evaluate, evaluate)));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.errors.find("the data differs between ranks"), std::string::npos) << ended.errors;
}

// After the job has compared its files.
TEST_F(LoneFailure, AFileThatChangesUnderOneTensorRankEndsTheJob) {
  Job job(two_ranks(std::string(kEndless) + " parallel.tensor=2 train.eval_interval=0"),
          scene_.folder());
  wait_for_step(3);
  overwrite("other/train.u16");
  expect_failed(0,
                "step *: ranks that share a model read different tokens: batch hash * on rank 0 @ "
                "*, * on rank 1 @ *; the token files of these hosts differ, or changed *",
                job.wait(kMaxSeconds));
}

TEST_F(LoneFailure, AValidationFileThatChangesUnderOneTensorRankEndsTheJob) {
  Job job(two_ranks(std::string(kEndless) + " parallel.tensor=2 train.eval_interval=1"),
          scene_.folder());
  wait_for_step(4);
  overwrite("other/validation.u16");
  expect_failed(0, "the evaluation at step *: ranks that share a model read different tokens: *",
                job.wait(kMaxSeconds));
}

TEST_F(LoneFailure, AProblemInTheConfigurationOfOneRankIsToldByThatRank) {
  scene_.write("other/config.yaml", replaced(scene_.read("config.yaml"), "seed: 7", "sead: 7"));
  expect_told_by(1, {"config.yaml:4:3: run.sead: unknown key; *"}, scene_.run(two_ranks("")));
  EXPECT_FALSE(fs::exists(scene_.path("runs")));
}

TEST_F(LoneFailure, AFileThatIsCutWhileOneRankTrainsEndsTheJob) {
  for (const int tensor : {1, 2}) {
    SCOPED_TRACE(fmt::format("parallel.tensor={}", tensor));
    add_other();
    fs::remove_all(scene_.path("runs"));
    Job job(two_ranks(fmt::format("{} parallel.tensor={} train.eval_interval=0", kEndless, tensor)),
            scene_.folder());
    wait_for_step(3);
    fs::resize_file(scene_.path("other/train.u16"), 10);
    expect_failed(1, "train.u16: was 8000 bytes when it was opened and is 10 now *",
                  job.wait(kMaxSeconds));
  }
}

TEST_F(LoneFailure, AFileThatIsCutWhileOneRankEvaluatesEndsTheJob) {
  Job job(two_ranks(std::string(kEndless) + " train.eval_interval=1"), scene_.folder());
  wait_for_step(4);
  fs::resize_file(scene_.path("other/validation.u16"), 10);
  expect_failed(1, "validation.u16: was 1200 bytes when it was opened and is 10 now *",
                job.wait(kMaxSeconds));
}

TEST_F(LoneFailure, AFullDiskEndsTheJob) {
  fs::create_directories(scene_.path("runs/run"));
  fs::create_symlink("/dev/full", scene_.path("runs/run/metrics.jsonl"));
  expect_failed(0, "runs/run/metrics.jsonl: writing failed: No space left on device *",
                scene_.run(two_ranks(kEndless), kMaxSeconds));
}

// The first rank has the memory and waits for the second, which may not even map its weights.
TEST_F(LoneFailure, AModelThatDoesNotFitIntoOneRanksMemoryEndsTheJob) {
  const std::string words = "--set model.vocab_size=2000000 model.hidden_size=64";  // 512 MB
  expect_failed(1, "cannot allocate 512*",
                scene_.run(two_ranks(words, "ulimit -v 600000;"), kMaxSeconds));
}

TEST_F(LoneFailure, AKilledRankEndsTheJob) {
  for (const int signal : {SIGKILL, SIGABRT, SIGSEGV}) {
    SCOPED_TRACE(fmt::format("signal {}", signal));
    fs::remove_all(scene_.path("runs"));
    Job job(two_ranks(kEndless, "echo $$ >pid;"), scene_.folder());
    wait_for_step(3);
    ASSERT_EQ(kill(std::stoi(scene_.read("other/pid")), signal), 0);
    const Ended ended = job.wait(kMaxSeconds);
    EXPECT_EQ(ended.exit_code, 128 + signal);
    EXPECT_TRUE(ended.left_behind.empty()) << fmt::format("{}", ended.left_behind);
    EXPECT_NE(ended.errors.find(fmt::format("exited on signal {}", signal)), std::string::npos)
        << ended.errors;
  }
}

// Too large to be scanned when the job starts: the id is met when a sample with it is read. It says
// where it lies, so that what is told can be checked.
TEST(LargeFile, AnIdBeyondTheVocabularyEndsTheJobWhenItIsRead) {
  constexpr std::int64_t kNumTokens = (std::int64_t{65} << 20) / 4;
  constexpr std::int64_t kStride = 4096;  // tokens; the rest of the file is a hole
  constexpr std::uint32_t kFirstId = 4'000'000'000;
  const Scene scene;
  scene.edit("train.u16", "large.u32");
  scene.edit("validation.u16", "large.u32");
  scene.edit("raw_u16", "raw_u32");
  {
    std::ofstream file(scene.path("large.u32"), std::ios::binary);
    for (std::int64_t at = kStride - 1; at < kNumTokens; at += kStride) {
      file.seekp(at * 4);
      file << bytes_of(kFirstId + static_cast<std::uint32_t>(at));
    }
  }
  const std::string words = std::string(kEndless) + " train.eval_interval=0";
  const Ended ended = scene.run(Scene::on_ranks(2, Scene::train(words)), kMaxSeconds);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_TRUE(ended.left_behind.empty()) << fmt::format("{}", ended.left_behind);
  EXPECT_GE(scene.metrics("runs/run").size(), 1) << "met before the first step";

  const std::vector<std::string> lines = told(ended);
  ASSERT_EQ(lines.size(), 1) << ended.errors;
  EXPECT_TRUE(matches(lines.front(),
                      "[rank * @ *] data.train[0].path: large.u32: token * has id *; legal with "
                      "model.vocab_size 257: 0 to 256"))
      << lines.front();
  const auto number_after = [&](std::string_view word) {
    const std::size_t begin = lines.front().find(word) + word.size();
    return std::stoull(lines.front().substr(begin));
  };
  const std::uint64_t place = number_after(": token ");
  EXPECT_EQ(place % kStride, kStride - 1);
  EXPECT_EQ(number_after(" has id "), kFirstId + place);
}

}  // namespace
}  // namespace redspine::testing
