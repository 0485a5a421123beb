// Disks that are full or turn read-only: the job ends with the cause, and the checkpoints that were
// there stay. Mounts small file systems in a namespace of its own; skipped where that is forbidden.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "tests/support/checkpoint_scene.h"
#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

/// Gives this process mounts of its own, once. 0, or the error's number.
int make_own_mounts() {
  static const int error = [] {
    if (unshare(CLONE_NEWNS) != 0) return errno;
    return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? 0 : errno;
  }();
  return error;
}

struct DiskCase {
  const char* name;
  int num_ranks;
  const char* settings;
};

class Disk : public ::testing::TestWithParam<DiskCase> {
 protected:
  void SetUp() override {
    const int error = make_own_mounts();
    if (error == EPERM) {
      GTEST_SKIP() << "fills up a disk of its own, and this user may not mount one: run it as root";
    }
    ASSERT_EQ(error, 0) << std::strerror(error);
    fs::create_directories(run_.run_folder() / "checkpoints");
  }
  void TearDown() override {
    if (is_mounted_) umount2(run_.checkpoints().c_str(), MNT_DETACH);
  }

  void mount_checkpoints(std::int64_t num_kib) {
    const std::string options = fmt::format("size={}k", num_kib);
    ASSERT_EQ(mount("tmpfs", run_.checkpoints().c_str(), "tmpfs", 0, options.c_str()), 0)
        << std::strerror(errno);
    is_mounted_ = true;
  }
  /// Waits for a moment when nobody writes.
  void make_read_only() const {
    wait_until([&] {
      return mount("tmpfs", run_.checkpoints().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) ==
             0;
    });
  }

  /// Until the disk ends it.
  Start start(const std::string& settings = "") const {
    return {
        .num_ranks = GetParam().num_ranks,
        .settings = fmt::format("train.steps={} {} {}", kEndless, GetParam().settings, settings)};
  }

  /// Every checkpoint in the folder passes `redspine checkpoint verify`.
  void expect_all_good() const {
    for (const std::int64_t step : run_.steps()) {
      const Ended ended = run_.run(fmt::format("{} checkpoint verify {}", CheckpointScene::binary(),
                                               run_.checkpoint(step).string()));
      EXPECT_EQ(ended.exit_code, 0) << ended.output << ended.errors;
    }
  }

  const CheckpointScene run_;
  bool is_mounted_ = false;
};

TEST_P(Disk, ThatIsFullEndsTheJobWithTheCauseAndTheBytesThatItNeeds) {
  // Room for three checkpoints and some, where all are kept.
  mount_checkpoints(480);
  const Ended ended = run_.train(start("checkpoint.keep=0"));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_TRUE(matches(ended.errors, "*.partial*No space left on device*needs * bytes*"))
      << ended.errors;
  EXPECT_GE(run_.steps().size(), 2U);
  expect_all_good();
  for (const std::string& name : run_.names()) {
    EXPECT_EQ(name.find(".partial"), std::string::npos) << name << " takes room that is missing";
  }

  // The next start goes on from the newest, needs the room again, and has the same to say.
  const std::int64_t newest = run_.newest_step();
  const Ended again = run_.train(start("checkpoint.keep=0"));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.output.find(fmt::format("{} after step", step_name(newest))), std::string::npos)
      << again.output;
  EXPECT_EQ(run_.newest_step(), newest);
  expect_all_good();
}

TEST_P(Disk, ThatTurnsReadOnlyEndsTheJob) {
  mount_checkpoints(4096);
  Job job(CheckpointScene::command(start()), run_.folder());
  wait_until([&] { return run_.newest_step() >= 3; });
  make_read_only();
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_TRUE(matches(ended.errors, "*runs/run/checkpoints/step_*Read-only file system*"))
      << ended.errors;
  EXPECT_GE(run_.newest_step(), 3);
  expect_all_good();

  // The next start does not train up to a save that would fail.
  const std::int64_t newest = run_.newest_step();
  const Ended again = run_.train(start());
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(matches(again.errors,
                      "*run.output_dir: cannot write runs/run/checkpoints: Read-only file system*"))
      << again.errors;
  EXPECT_EQ(run_.newest_step(), newest);
}

std::string name_of(const ::testing::TestParamInfo<DiskCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(On, Disk,
                         ::testing::Values(DiskCase{"OneRank", 1, ""},
                                           DiskCase{"OneRankThatWaitsForItsSaves", 1,
                                                    "checkpoint.async=false"},
                                           DiskCase{"TwoRanks", 2, ""}),
                         name_of);

}  // namespace
}  // namespace redspine::testing
