// A run that is asked to stop saves and ends with exit code 75, whatever it is doing; the next
// start goes on as if it had not been stopped. A run that is asked to save does so and goes on.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <ostream>
#include <stop_token>
#include <thread>

#include "tests/support/checkpoint_scene.h"
#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kStopped = 75;

struct StopCase {
  const char* name;
  int num_ranks;
  std::string cause;  // as the run tells it
  /// Asks a run that is at work; null where the start asks already.
  std::function<void(const CheckpointScene&)> ask;
  std::string variables = "";
};

void PrintTo(const StopCase& stop, std::ostream* out) { *out << stop.name; }

void send(const CheckpointScene& run, int rank, int signal) { kill(run.process(rank), signal); }

/// A run that saves at its end alone.
Start start_of(std::int64_t num_steps, int num_ranks = 1) {
  return {.num_ranks = num_ranks,
          .settings = fmt::format("train.steps={} train.eval_interval=100 checkpoint.interval=0",
                                  num_steps)};
}

class Stop : public ::testing::TestWithParam<StopCase> {
 protected:
  const CheckpointScene run_;
};

// How far the run gets before it stops is up to the machine, so what it is compared with is trained
// afterwards, to a step beyond.
TEST_P(Stop, SavesAndGoesOnLaterAsIfItHadNot) {
  const StopCase& stop = GetParam();
  Start stopped = start_of(kEndless, stop.num_ranks);
  stopped.variables = stop.variables;
  Job job(CheckpointScene::command(stopped), run_.folder());
  if (stop.ask) {
    wait_until([&] { return run_.trained().size() > 20; });
    stop.ask(run_);
  }
  const Ended ended = job.wait();
  ASSERT_EQ(ended.exit_code, kStopped) << ended.errors;
  EXPECT_TRUE(matches(ended.output, "*stopped after step * on request (" + stop.cause + ")*"))
      << ended.output;
  ASSERT_EQ(run_.steps().size(), 1U);
  const std::int64_t step = run_.newest_step();
  EXPECT_FALSE(fs::exists(run_.run_folder() / "STOP")) << "the next start would stop, too";
  EXPECT_FALSE(fs::exists(run_.run_folder() / "lock"));
  const std::vector<std::string> events = run_.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(
      events.front(),
      fmt::format(R"({{"kind":"event","step":{},"event":"stop","cause":"{}"}})", step, stop.cause));

  const std::int64_t last_step = step + 150;  // with an evaluation on the way
  const Start start = start_of(last_step, stop.num_ranks);
  const CheckpointScene unstopped;
  const Ended reference = unstopped.train(start);
  ASSERT_EQ(reference.exit_code, 0) << reference.errors;
  expect_prefix(run_.trained(), unstopped.trained());
  const Ended resumed = run_.train(start);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_TRUE(run_.trained() == unstopped.trained());
  EXPECT_EQ(run_.hashes(last_step), unstopped.hashes(last_step));
}

std::string name_of(const ::testing::TestParamInfo<StopCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    On, Stop,
    ::testing::Values(
        StopCase{"Sigterm", 1, "SIGTERM", [](const auto& run) { send(run, 0, SIGTERM); }},
        StopCase{"Sigusr1", 1, "SIGUSR1", [](const auto& run) { send(run, 0, SIGUSR1); }},
        StopCase{"ASignalToTheSecondOfTwoRanks", 2, "SIGUSR1",
                 [](const auto& run) { send(run, 1, SIGUSR1); }},
        StopCase{"TheFileSTOP", 1, "the file STOP",
                 [](const auto& run) { run.write("runs/run/STOP", ""); }},
        StopCase{"TheFileSTOPOnTwoRanks", 2, "the file STOP",
                 [](const auto& run) { run.write("runs/run/STOP", ""); }},
        // Which is in 3 to 4 seconds: the process is to have started by then, no more.
        StopCase{"TheEndOfTheSlurmAllocation", 1, "the end of the Slurm allocation", nullptr,
                 "SLURM_JOB_END_TIME=$(($(date +%s) + 4))"}),
    name_of);

TEST(Request, EverySignalThatAsksForAnEndSaves) {
  const std::map<int, std::string> names = {
      {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}, {SIGXCPU, "SIGXCPU"}};
  for (const auto& [signal, name] : names) {
    const CheckpointScene run;
    Job job(CheckpointScene::command(start_of(kEndless)), run.folder());
    wait_until([&] { return run.trained().size() > 5; });
    send(run, 0, signal);
    const Ended ended = job.wait();
    EXPECT_EQ(ended.exit_code, kStopped) << name << ended.errors;
    EXPECT_NE(ended.output.find("on request (" + name + ")"), std::string::npos) << ended.output;
    EXPECT_EQ(run.steps().size(), 1U);
  }
}

TEST(Request, ASignalThatIsIgnoredFromTheStartAsUnderNohupAsksForNothing) {
  const CheckpointScene run;
  Start start = start_of(kEndless);
  start.variables = "--ignore-signal=HUP";
  Job job(CheckpointScene::command(start), run.folder());
  wait_until([&] { return run.trained().size() > 5; });
  send(run, 0, SIGHUP);
  const std::size_t lines = run.trained().size();
  wait_until([&] { return run.trained().size() > lines + 20; });
  send(run, 0, SIGTERM);
  EXPECT_EQ(job.wait().exit_code, kStopped);
}

/// Signals to every rank, without a pause, until all of them are gone.
class Storm {
 public:
  Storm(const CheckpointScene& run, int num_ranks) {
    for (int rank = 0; rank < num_ranks; ++rank) ranks_.push_back(run.process(rank));
    thread_ = std::jthread([this](const std::stop_token& end) {
      while (!end.stop_requested()) {
        for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) send_to_all(signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }

 private:
  /// A process that is gone gets nothing more: its number may be another's.
  void send_to_all(int signal) {
    std::erase_if(ranks_, [signal](pid_t rank) { return kill(rank, signal) != 0; });
  }

  std::vector<pid_t> ranks_;
  std::jthread thread_;
};

TEST(Request, NothingAfterTheFirstSignalChangesTheExitCode) {
  for (const int num_ranks : {1, 2}) {
    const CheckpointScene run;
    Job job(CheckpointScene::command(start_of(kEndless, num_ranks)), run.folder());
    wait_until([&] { return run.trained().size() > 5; });
    const Storm storm(run, num_ranks);
    const Ended ended = job.wait();
    EXPECT_EQ(ended.exit_code, kStopped) << ended.errors;
    EXPECT_EQ(run.steps().size(), 1U);
  }
}

TEST(Request, ASignalAfterTheLastStepChangesNothing) {
  constexpr int kSteps = 200;
  const CheckpointScene run;
  Job job(CheckpointScene::command(
              {.settings = fmt::format("train.steps={} train.eval_interval=0 checkpoint.interval=0",
                                       kSteps)}),
          run.folder());
  wait_until([&] { return run.trained().size() == kSteps; });
  const Storm storm(run, 1);
  EXPECT_EQ(job.wait().exit_code, 0);
  EXPECT_EQ(run.newest_step(), kSteps);
}

TEST(Request, TheFileSAVESavesAndTheRunGoesOn) {
  const CheckpointScene run;
  Job job(CheckpointScene::command(start_of(kEndless)), run.folder());
  wait_until([&] { return run.trained().size() > 20; });
  run.write("runs/run/SAVE", "");
  wait_until([&] { return run.newest_step() > 0; });
  const std::size_t lines = run.trained().size();
  wait_until([&] { return run.trained().size() > lines + 20; });
  EXPECT_FALSE(fs::exists(run.run_folder() / "SAVE"));
  EXPECT_EQ(run.steps().size(), 1U);
  send(run, 0, SIGTERM);
  EXPECT_EQ(job.wait().exit_code, kStopped);
}

// One batch of the validation set a poll: a long evaluation must not hold up a stop.
TEST(Request, ASignalStopsAnEvaluation) {
  const CheckpointScene run;
  // All of it would take many minutes.
  fs::resize_file(run.path("validation.u16"), std::uintmax_t{1} << 30);
  const Start start{.settings = "train.steps=40 train.eval_interval=20"};
  Job job(CheckpointScene::command(start), run.folder());
  wait_until([&] { return run.trained().size() == 20; });
  send(run, 0, SIGTERM);
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, kStopped) << ended.errors;
  EXPECT_EQ(run.newest_step(), 20);
  EXPECT_EQ(run.trained().size(), 20U) << "half an evaluation tells nothing";

  // The evaluation of step 20 comes after all, and on a smaller set, so that it ends.
  run.write_tokens("validation.u16", 100);
  ASSERT_EQ(run.train(start).exit_code, 0);
  const std::vector<std::string> lines = run.trained();
  ASSERT_EQ(lines.size(), 42U);
  EXPECT_TRUE(lines[20].starts_with(R"({"kind":"validation","step":20,)")) << lines[20];
}

TEST(Request, ASecondJobInTheSameRunIsRejectedAndTheFirstGoesOn) {
  const CheckpointScene run;
  Job job(CheckpointScene::command({.settings = fmt::format("train.steps={}", kEndless)}),
          run.folder());
  wait_until([&] { return run.trained().size() > 20; });
  // By a shell of its own: one Job at a time.
  const std::string second =
      fmt::format("cd {} && {} >second.out 2>second.err", run.folder().string(),
                  Scene::train("--set train.steps=1000000"));
  const int status = std::system(second.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_TRUE(matches(run.read("second.err"),
                      "*run.name: another job is at work in this run's directory: process " +
                          std::to_string(run.process()) + " on *"))
      << run.read("second.err");
  const std::size_t lines = run.trained().size();
  wait_until([&] { return run.trained().size() > lines + 20; });
  send(run, 0, SIGKILL);
  EXPECT_EQ(job.wait().exit_code, 137);

  const Ended third = run.train({.settings = "train.steps=1"});
  EXPECT_EQ(third.exit_code, 0) << third.errors;
  EXPECT_NE(third.errors.find("took over the lock of process"), std::string::npos) << third.errors;
}

TEST(Request, ResumeNoneStartsAnewAndLosesNoCheckpointThatIsAhead) {
  const CheckpointScene run;
  ASSERT_EQ(run.train({.settings = "train.steps=4"}).exit_code, 0);
  const std::vector<std::string> expected = run.trained();
  const Ended ended = run.train({.settings = "train.steps=2 checkpoint.resume=none"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_NE(ended.output.find("starting at step 0"), std::string::npos);
  EXPECT_EQ(run.names(),
            (std::vector<std::string>{"step_00000001", "step_00000002", "step_00000003.aside-1",
                                      "step_00000004.aside-1"}));
  // They go like others once `keep` newer ones have come as far.
  ASSERT_EQ(run.train({.settings = "train.steps=4"}).exit_code, 0);
  EXPECT_EQ(run.trained(), expected);
  EXPECT_EQ(run.names(), (std::vector<std::string>{"step_00000002", "step_00000003",
                                                   "step_00000004", "step_00000004.aside-1"}))
      << "step 2 is where it resumed from";
}

TEST(Request, ResumeFromADirectoryOfAnotherRunGoesOnFromThere) {
  const CheckpointScene run;
  ASSERT_EQ(run.train({.settings = "train.steps=6 checkpoint.keep=0"}).exit_code, 0);
  const Start start{.settings =
                        "train.steps=6 checkpoint.keep=1 "
                        "checkpoint.resume=runs/run/checkpoints/step_00000003",
                    .run = "second"};
  const Ended ended = run.train(start);
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(run.hashes(6, "second"), run.hashes(6));
  EXPECT_EQ(run.steps(), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6})) << "nothing of it went";
  EXPECT_EQ(run.steps("second"), (std::vector<std::int64_t>{5, 6})) << "5 is known to be good";
}

TEST(Request, RetentionKeepsWhatIsForeign) {
  const CheckpointScene run;
  ASSERT_EQ(run.train({.settings = "train.steps=3"}).exit_code, 0);
  fs::create_directories(run.checkpoints() / "best");
  run.write("runs/run/checkpoints/step_00000002/notes.txt", "mine");
  run.write("runs/run/checkpoints/step_1", "a file");
  fs::create_directories(run.checkpoints() / "step_00000001.0123456789abcdef.partial");
  ASSERT_EQ(run.train({.settings = "train.steps=8"}).exit_code, 0);
  EXPECT_EQ(run.names(), (std::vector<std::string>{"best", "step_00000001.0123456789abcdef.partial",
                                                   "step_00000002", "step_00000003",
                                                   "step_00000007", "step_00000008", "step_1"}))
      << "step 3 is where it resumed from";
}

}  // namespace
}  // namespace redspine::testing
