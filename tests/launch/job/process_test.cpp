// What the process settles with its system: closed and full outputs, limits, CPUs.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <sstream>

#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

class Output : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return run_.path(name); }
  std::string train(const std::string& more = "") const {
    return fmt::format(REDSPINE_BINARY " train --config {} {}", path("run.yaml"), more);
  }
  /// The command with a pipe for standard output whose reader has gone, and "code N".
  std::string to_nobody(const std::string& command) const {
    return fmt::format("mkfifo {0}; (: <{0}) & exec 3>{0}; wait; {1} >&3; echo code $?",
                       path("pipe"), command);
  }
  /// The run trained to its end, and its files are whole.
  void expect_trained() const {
    EXPECT_TRUE(std::filesystem::exists(path("runs/tiny/checkpoints/step_00000002")));
    std::istringstream lines(read_file(path("runs/tiny/metrics.jsonl")));
    int num_lines = 0;
    for (std::string line; std::getline(lines, line); ++num_lines) {
      EXPECT_TRUE(line.starts_with("{\"kind\":") && line.ends_with("}")) << line;
    }
    EXPECT_EQ(num_lines, 3) << "two steps and a checkpoint";
  }

  const TinyRun run_;
};

TEST_F(Output, ThatCannotBeWrittenEndsACommandWith1AndItsCause) {
  const std::string inspect = fmt::format("tokenize --inspect {}", path("tokens"));
  for (const std::string& words :
       {std::string("--version"), std::string("--help"), std::string("train --help"), inspect}) {
    const Result full = redspine(words + " >/dev/full");
    EXPECT_EQ(full.exit_code, 1) << words;
    EXPECT_TRUE(full.output.starts_with(
        "redspine: standard output: writing failed: No space left on device"))
        << full.output;
  }
  const Result dry = shell(train("--dry-run") + " >/dev/full");
  EXPECT_EQ(dry.exit_code, 1);
  const Result closed = redspine("--version >&-");
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_EQ(count(closed.output, "standard output: writing failed: Bad file descriptor"), 1)
      << closed.output;
}

TEST_F(Output, WhoseReaderIsGoneEndsACommandWith1) {
  const Result result = shell(to_nobody(REDSPINE_BINARY " --help"));
  EXPECT_EQ(count(result.output, "standard output: writing failed: Broken pipe"), 1)
      << result.output;
  EXPECT_EQ(count(result.output, "code 1\n"), 1) << result.output;
}

TEST_F(Output, OfErrorsThatCannotBeWrittenLeavesTheExitCode) {
  EXPECT_EQ(redspine("trian 2>/dev/full").exit_code, 2);
  EXPECT_EQ(redspine("2>/dev/full").exit_code, 2);
  EXPECT_EQ(shell(train("--set model.num_heads=3 2>&-")).exit_code, 2);
}

TEST_F(Output, ThatIsFullLetsTrainingGoOn) {
  const Result result = shell(train() + " >/dev/full");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(count(result.output, "No space left on device"), 1) << result.output;
  EXPECT_EQ(count(result.output, "the run goes on without its console"), 1) << result.output;
  expect_trained();

  const std::string checkpoint = path("runs/tiny/checkpoints/step_00000002");
  for (const std::string& words :
       {fmt::format("evaluate --checkpoint {} --data {}", checkpoint, path("tokens")),
        fmt::format("evaluate --json --checkpoint {} --data {}", checkpoint, path("tokens")),
        fmt::format("sample --checkpoint {} --prompt The --tokens 2", checkpoint),
        fmt::format("checkpoint inspect {}", checkpoint)}) {
    const Result full = redspine(words + " >/dev/full");
    EXPECT_EQ(full.exit_code, 1) << words;
    EXPECT_EQ(count(full.output, "standard output: writing failed: No space left on device"), 1)
        << words << '\n'
        << full.output;
  }
}

TEST_F(Output, WhoseReaderIsGoneLetsTrainingGoOn) {
  const Result result = shell(to_nobody(train()));
  EXPECT_EQ(count(result.output, "the run goes on without its console"), 1) << result.output;
  EXPECT_EQ(count(result.output, "code 0\n"), 1) << result.output;
  expect_trained();
}

// A file that training opens must not get the number of the closed stream.
TEST_F(Output, ThatIsClosedIsWrittenToNoFile) {
  for (const std::string closed : {" >&-", " <&- >&- 2>&-"}) {
    EXPECT_EQ(shell(train("--set checkpoint.resume=none") + closed).exit_code, 0) << closed;
    expect_trained();
  }
}

TEST_F(Output, AFileBeyondTheLimitOfItsSizeIsNamed) {
  const Result result = shell(fmt::format(
      "ulimit -f 1; " REDSPINE_BINARY " tokenize {} --output {}", path("text"), path("more")));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_EQ(count(result.output, "File too large"), 1) << result.output;
}

TEST_F(Output, ATaskOfAStepThatMpiDoesNotKnowIsRejected) {
  const std::string lone = "unset OMPI_COMM_WORLD_SIZE; SLURM_STEP_NUM_TASKS=2 ";
  const Result refused = shell(lone + train("--dry-run"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(count(refused.output, "one of 2 tasks of a Slurm step"), 1) << refused.output;
  EXPECT_EQ(
      shell("unset OMPI_COMM_WORLD_SIZE; SLURM_STEP_NUM_TASKS=1 " + train("--dry-run")).exit_code,
      0);
  EXPECT_EQ(shell("SLURM_STEP_NUM_TASKS=2 " REDSPINE_MPIRUN " 1 " + train("--dry-run")).exit_code,
            0)
      << "mpirun over two nodes is such a step itself";
}

/// As many files of one sample as one path.
class Shards : public Output {
 protected:
  static constexpr int kNumShards = 80;
  const std::string more_ = fmt::format(
      "--dry-run --set 'data.train=[{{path: {}}}]' data.format=raw_u16", path("shard*.u16"));

  void SetUp() override {
    for (int i = 0; i < kNumShards; ++i) {
      run_.write(fmt::format("shard{:03}.u16", i), std::string(100, '\0'));
    }
  }
};

TEST_F(Shards, BeyondTheSoftLimitOfOpenFilesAreOpened) {
  const Result result = shell("ulimit -S -n 64; " + train(more_));
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST_F(Shards, BeyondTheHardLimitAreOneErrorWithTheWayOut) {
  const Result result = shell("ulimit -n 64; " + train(more_));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "cannot be opened: Too many open files"), 1) << result.output;
  EXPECT_EQ(count(result.output, "ulimit -n"), 1) << result.output;
}

TEST_F(Output, ThreadsAreAsManyWhereOpenMpBindsThem) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  if (CPU_COUNT(&mask) < 2) {
    GTEST_SKIP() << "binding threads shows with two CPUs, and this process may use one";
  }
  const std::string all = "unset OMP_NUM_THREADS; ";
  const Result free = shell(all + train("--dry-run"));
  for (const std::string bound :
       {"OMP_PROC_BIND=true ", "OMP_PROC_BIND=close ", "OMP_PLACES=cores "}) {
    const Result result = shell(all + bound + train("--dry-run"));
    EXPECT_EQ(result.output, free.output) << bound;
  }
}

}  // namespace
}  // namespace redspine::testing
