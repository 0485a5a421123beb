// The `redspine` binary as a user meets it: words in, text and an exit code out.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/command_line.h"

namespace redspine::testing {
namespace {

class Command : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return run_.path(name); }
  void write_config(const std::string& name, const std::string& more) const {
    run_.write_config(name, more);
  }
  std::string train(const std::string& config, const std::string& more = "") const {
    return fmt::format("train --config {} {}", path(config), more);
  }

 private:
  TinyRun run_;
};

TEST(CommandLine, TellsItsVersionAndLibraries) {
  const Result result = redspine("--version");
  EXPECT_EQ(result.exit_code, 0);
  const std::string first_line = "redspine " REDSPINE_VERSION "\n";
  EXPECT_TRUE(result.output.starts_with(first_line)) << result.output;
  const std::string cuda_line = "CUDA       " REDSPINE_CUDA_LINE;
  for (const std::string& part : {std::string("backends   cpu"), std::string("kernels    "),
                                  std::string("OpenBLAS"), std::string("MPI"), cuda_line}) {
    EXPECT_NE(result.output.find(part), std::string::npos) << part << " in\n" << result.output;
  }
}

TEST_F(Command, RejectsKernelsThatItDoesNotHave) {
  const Result result =
      shell("REDSPINE_CPU_KERNELS=neon " REDSPINE_BINARY " " + train("run.yaml", "--dry-run"));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_NE(result.output.find("REDSPINE_CPU_KERNELS: is neon, which is not in this build; legal "
                               "here: "),
            std::string::npos)
      << result.output;
}

TEST(CommandLine, StartsInLittleAddressSpace) {
  for (const char* words : {"--version", "--help"}) {
    const Result result =
        shell(fmt::format("ulimit -v 150000; timeout 20 " REDSPINE_BINARY " {}", words));
    EXPECT_EQ(result.exit_code, 0) << words << ": " << result.output;
  }
}

TEST_F(Command, ThatNeedsMpiSaysThatItHasTooLittleAddressSpace) {
  const Result result =
      shell("ulimit -v 150000; timeout 20 " REDSPINE_BINARY " " + train("run.yaml"));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("address space"), std::string::npos) << result.output;
}

TEST(CommandLine, HelpListsTheCommandsThatExist) {
  const Result help = redspine("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(count(help.output, "\n  train "), 1);
  EXPECT_EQ(count(help.output, "\n  tokenize "), 1);
  for (const std::string name : {"sample", "evaluate", "checkpoint"}) {
    EXPECT_EQ(count(help.output, "\n  " + name + " "), 1);
    EXPECT_EQ(redspine(name + " --help").exit_code, 0);
  }
  EXPECT_EQ(redspine("train --help").exit_code, 0);
  EXPECT_EQ(redspine("tokenize --help").exit_code, 0);
  EXPECT_EQ(redspine("").exit_code, 2);
}

TEST(CommandLine, AnUnknownCommandIsToldTheNearest) {
  const Result result = redspine("trian");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output,
            "redspine: trian: unknown command; nearest: train; all: redspine --help\n");
}

TEST(CommandLine, AnOptionIsWrittenInFull) {
  const Result typo = redspine("tokenize --ouput x");
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_NE(typo.output.find("--ouput: unknown option; nearest: --output"), std::string::npos)
      << typo.output;
  EXPECT_EQ(redspine("tokenize --out x").exit_code, 2);
}

TEST(CommandLine, TokenizeRejectsWhatItCannotRead) {
  EXPECT_EQ(redspine("tokenize no-such-file --output /tmp/never").exit_code, 2);
  EXPECT_EQ(redspine("tokenize").exit_code, 2);
  const Result format = redspine("tokenize x --output y --format xml");
  EXPECT_EQ(format.exit_code, 2);
  EXPECT_NE(format.output.find("--format: read \"xml\"; legal: auto, text, jsonl"),
            std::string::npos)
      << format.output;
}

TEST_F(Command, TrainWithoutConfigIsAProblem) {
  const Result result = redspine("train");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.output.find("--config FILE is missing"), std::string::npos) << result.output;
}

TEST_F(Command, TrainingWritesTheEffectiveConfigWhichTrainsTheSameAgain) {
  const Result first = redspine(train("run.yaml", "--set train.steps=3 run.seed=9"));
  ASSERT_EQ(first.exit_code, 0) << first.output;
  const std::string written = path("runs/tiny/config.yaml");
  ASSERT_TRUE(std::filesystem::exists(written));
  const Result again = redspine("train --dry-run --config " + written);
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_NE(again.output.find("  seed: 9  # " + written), std::string::npos) << again.output;
  EXPECT_NE(again.output.find("  steps: 3  # " + written), std::string::npos) << again.output;
}

TEST_F(Command, OffATerminalTrainingPrintsWholePlainLinesUnderMpirunToo) {
  const Result result = on_ranks(2, train("run.yaml"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(count(result.output, "\nstep 2/2  loss "), 1) << result.output;
  EXPECT_EQ(result.output.find_first_of("\r\033"), std::string::npos) << result.output;
}

TEST_F(Command, ADryRunShowsConfigAndLayoutAndTouchesNothing) {
  const Result result = on_ranks(4, train("run.yaml", "--dry-run --set parallel.tensor=2"));
  EXPECT_EQ(result.exit_code, 0);
  for (const std::string part :
       {"tensor: 2  # --set parallel.tensor=2", "layout: 4 ranks = 2 data x 2 tensor",
        "ranks 0 to 3 on ", "per step: 4 sequences of 16 tokens = 2 data ranks x 2 accumulation"}) {
    EXPECT_EQ(count(result.output, part), 1) << part << " in\n" << result.output;
  }
  EXPECT_FALSE(std::filesystem::exists(path("runs")));
}

TEST_F(Command, AllProblemsAreToldByOneRankAndEndAllWithCode2) {
  write_config("bad.yaml", "trian: 3\n");
  const Result result = on_ranks(3, train("bad.yaml", "--set model.num_heads=3 parallel.tensor=2"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "[rank 0 @ "), 4) << result.output;
  EXPECT_EQ(count(result.output, "[rank 1 @ "), 0);
  EXPECT_EQ(count(result.output, "[rank 2 @ "), 0);
  EXPECT_EQ(count(result.output, "bad.yaml:9:1: trian: unknown key; nearest: train;"), 1);
  EXPECT_EQ(count(result.output, "is 2, which does not divide the 3 ranks of this job"), 1);
  EXPECT_FALSE(std::filesystem::exists(path("runs")));
}

TEST_F(Command, AProblemOfOneRankAloneIsToldByThatRank) {
  const Result result =
      on_ranks(1, train("run.yaml") + " : -n 1 " REDSPINE_BINARY " " + train("missing.yaml"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "[rank 0 @ "), 0) << result.output;
  EXPECT_EQ(count(result.output, "[rank 1 @ "), 1);
  EXPECT_EQ(count(result.output, "missing.yaml: cannot read the configuration: No such file"), 1);
}

TEST_F(Command, RanksThatReadDifferentConfigurationsDoNotTrain) {
  const Result result = on_ranks(1, train("run.yaml") + " : -n 1 " REDSPINE_BINARY " " +
                                        train("run.yaml", "--set run.seed=5"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output, "[rank 0 @ "), 1) << result.output;
  EXPECT_EQ(count(result.output, "\"  seed: 1234\" on rank 0, \"  seed: 5\" on rank 1"), 1);
}

TEST_F(Command, AProblemInADataFileIsToldAtTheKeyThatNamesIt) {
  const Result result = on_ranks(2, train("run.yaml", "--set 'data.validation=[{path: nothing}]'"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count(result.output,
                  "--set data.validation=[{path: nothing}]: data.validation[0].path: nothing:"),
            1)
      << result.output;
  EXPECT_FALSE(std::filesystem::exists(path("runs")));
}

TEST_F(Command, ARunFolderThatCannotBeMadeIsNamed) {
  const Result result =
      redspine(train("run.yaml", fmt::format("--set run.output_dir={}", path("text"))));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.output.find("run.output_dir: cannot write " + path("text") +
                               "/tiny/config.yaml: Not a directory"),
            std::string::npos)
      << result.output;
}

TEST_F(Command, AScheduleThatDoesNotFitTheRunIsWarnedOfAtItsKey) {
  for (const char* how : {"--dry-run", ""}) {
    const Result late =
        redspine(train("run.yaml", "--set schedule.warmup_steps=700 " + std::string(how)));
    EXPECT_EQ(late.exit_code, 0) << late.output;
    EXPECT_EQ(
        count(late.output,
              "] warning: --set schedule.warmup_steps=700: schedule.warmup_steps: is 700 in a "
              "run of 2 steps: the learning rate only rises, to 1.71e-06"),
        1)
        << late.output;
    EXPECT_EQ(count(late.output,
                    "\nlearning rate: 700 warm-up steps to 0.0006, then cosine to "
                    "6e-05 at step 2\n"),
              1)
        << late.output;
  }
  const Result early =
      redspine(train("run.yaml", "--dry-run --set schedule.decay_steps=1 schedule.min_ratio=0"));
  EXPECT_EQ(count(early.output,
                  "schedule.decay_steps: is 1 in a run of 2 steps: the learning rate "
                  "stays at 0 for the 1 step after it, which trains nothing"),
            1)
      << early.output;
}

TEST_F(Command, MoreThreadsThanCpusAreWarnedOfOnce) {
  const Result result = shell("OMP_NUM_THREADS=4096 " REDSPINE_MPIRUN " 2 " REDSPINE_BINARY " " +
                              train("run.yaml", "--dry-run"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(count(result.output, "warning: 2 ranks on "), 1) << result.output;
  EXPECT_EQ(count(result.output, "with 8192 threads in all"), 1) << result.output;
}

}  // namespace
}  // namespace redspine::testing
