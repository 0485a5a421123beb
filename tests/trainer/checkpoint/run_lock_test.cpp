#include "trainer/checkpoint/run_lock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

std::string this_host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

TEST(RunLock, IsFreeAgainAtItsEnd) {
  const Scratch scratch;
  { const RunLock lock(scratch / ""); }
  EXPECT_FALSE(std::filesystem::exists(scratch / "lock"));
  const RunLock lock(scratch / "");
  EXPECT_EQ(lock.takeover(), "");
}

TEST(RunLock, ASecondJobIsRejectedAndToldWho) {
  const Scratch scratch;
  const RunLock lock(scratch / "");
  const std::string error = config_error_of([&] { RunLock second(scratch / ""); });
  EXPECT_NE(error.find(fmt::format("process {} on {}", getpid(), this_host())), std::string::npos)
      << error;
  EXPECT_TRUE(error.starts_with("run.name: ")) << error;
  EXPECT_TRUE(std::filesystem::exists(scratch / "lock"));
}

TEST(RunLock, IsLookedAtWithoutBeingTaken) {
  const Scratch scratch;
  const auto error = [&] { return config_error_of([&] { RunLock::check_free(scratch / ""); }); };
  const auto refusal = [&] { return config_error_of([&] { RunLock lock(scratch / ""); }); };
  EXPECT_EQ(error(), "no ConfigError was thrown");
  EXPECT_FALSE(std::filesystem::exists(scratch / "lock"));
  {
    const RunLock lock(scratch / "");
    const std::string text = read_file(scratch / "lock");
    EXPECT_EQ(error(), refusal());
    EXPECT_TRUE(error().starts_with("run.name: another job is at work")) << error();
    EXPECT_EQ(read_file(scratch / "lock"), text);
  }
  scratch.write("lock", "elsewhere 1234 -\n");
  EXPECT_EQ(error(), refusal());
  // A process of that number lives, but is another by now.
  const std::string stale = fmt::format("{} {} -\n", this_host(), getpid());
  scratch.write("lock", stale);
  EXPECT_EQ(error(), "no ConfigError was thrown");
  EXPECT_EQ(read_file(scratch / "lock"), stale);
}

TEST(RunLock, TheLockOfAKilledProcessIsTakenOver) {
  const Scratch scratch;
  const pid_t child = fork();
  if (child == 0) {
    const RunLock lock(scratch / "");
    _exit(0);  // without an end of the lock, as a kill has none
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(std::filesystem::exists(scratch / "lock"));
  const RunLock lock(scratch / "");
  EXPECT_EQ(lock.takeover(), fmt::format("took over the lock of process {} on {}, which has ended",
                                         child, this_host()));
}

TEST(RunLock, ThatAPersonDeletedLeavesTheNextJobItsOwn) {
  const Scratch scratch;
  {
    const RunLock lock(scratch / "");
    std::filesystem::remove(scratch / "lock");
    scratch.write("lock", "elsewhere 1234 -\n");
  }
  EXPECT_EQ(read_file(scratch / "lock"), "elsewhere 1234 -\n");
}

TEST(RunLock, TheLockOfAnotherHostIsNot) {
  const Scratch scratch;
  scratch.write("lock", "elsewhere 1234 -\n");
  const std::string error = config_error_of([&] { RunLock lock(scratch / ""); });
  EXPECT_NE(error.find("process 1234 on elsewhere"), std::string::npos) << error;
}

/// A variable as Slurm sets it for what a job runs.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

std::string refusal_in(const Scratch& scratch) {
  return config_error_of([&] { RunLock lock(scratch / ""); });
}

// On a file system that keeps the locks of its hosts apart.
TEST(RunLock, AnEarlierStartOfTheSameSlurmJobHasEnded) {
  const Scratch scratch;
  scratch.write("lock", "elsewhere 1234 77 1 0\n");
  const Variable restarts("SLURM_RESTART_COUNT", "2");
  {
    const Variable job("SLURM_JOB_ID", "78");
    EXPECT_NE(refusal_in(scratch), "") << "another job";
  }
  const Variable job("SLURM_JOB_ID", "77");
  const RunLock lock(scratch / "");
  EXPECT_EQ(lock.takeover(),
            "took over the lock of process 1234 on elsewhere of Slurm job 77, step 0, which has "
            "ended");
}

TEST(RunLock, TheSameStartOfTheSameSlurmJobIsAtWorkOnAnotherHost) {
  const Scratch scratch;
  const Variable job("SLURM_JOB_ID", "77");
  const Variable step("SLURM_STEP_ID", "1");
  for (const char* holder :
       {"elsewhere 1234 77 0 1\n", "elsewhere 1234 77 0 0\n", "elsewhere 1234 77 0 -\n",
        "elsewhere 1234 77 1 0\n", "elsewhere 1234 77\n"}) {
    scratch.write("lock", holder);
    EXPECT_NE(refusal_in(scratch).find("process 1234 on elsewhere of Slurm job 77"),
              std::string::npos)
        << holder;
  }
  const Variable restarts("SLURM_RESTART_COUNT", "1");
  EXPECT_NE(refusal_in(scratch), "") << "a lock that says nothing of restarts";
}

TEST(RunLock, SaysWhichStartAndStepOfSlurmHasIt) {
  const Scratch scratch;
  const Variable job("SLURM_JOB_ID", "77");
  const Variable step("SLURM_STEP_ID", "3");
  const RunLock lock(scratch / "");
  EXPECT_EQ(read_file(scratch / "lock"), fmt::format("{} {} 77 0 3\n", this_host(), getpid()));
}

}  // namespace
}  // namespace redspine
