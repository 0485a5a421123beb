// One rank does not see what the others do, as on a host that lacks a file system: it is named, and
// whatever is there stays as it is. Mounts in namespaces of their own; skipped where that is
// forbidden.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/support/checkpoint_scene.h"
#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "runs/run/checkpoints";

class BlindRank : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (std::system("unshare --mount mount -t tmpfs none /mnt 2>/dev/null") != 0) {
      GTEST_SKIP() << "hides a folder from a rank, and this user may not mount: run it as root";
    }
  }

  void train() const {
    const Ended ended = run_.train({.num_ranks = 2, .settings = "train.steps=4"});
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  }
  /// Two ranks, of which one has mounted something.
  Ended train_blind(const std::string& mount, const std::string& settings) const {
    const std::string words =
        Scene::train(fmt::format("--set train.steps=6 run.name=run {}", settings));
    const std::string blind =
        fmt::format("unshare --mount sh -c 'mount {} && exec {}'", mount, words);
    const bool is_first = GetParam() == 0;
    return run_.run("env OMPI_MCA_odls_base_sigkill_timeout=0 " +
                    Scene::on_ranks(1, fmt::format("{} : -n 1 {}", is_first ? blind : words,
                                                   is_first ? words : blind)));
  }
  /// Files of the run, with what they say.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(run_.run_folder())) {
      const std::string name = entry.path().lexically_relative(run_.folder()).string();
      all[name] = entry.is_regular_file() ? run_.read(name) : "";
    }
    return all;
  }
  void expect_rejected(const std::string& folder, const std::string& settings,
                       const std::string& cause) const {
    SCOPED_TRACE(settings);
    const auto before = contents();
    const Ended ended = train_blind("-t tmpfs none " + folder, settings);
    EXPECT_EQ(ended.exit_code, 2) << ended.output;
    EXPECT_TRUE(matches(ended.errors, fmt::format("*{}*", cause))) << ended.errors;
    EXPECT_EQ(told(ended).size(), 1U) << ended.errors;
    EXPECT_EQ(contents(), before);
  }
  static std::string rank(int number) { return fmt::format("rank {} @ *", number); }
  static std::string blind() { return rank(GetParam()); }
  static std::string seeing() { return rank(1 - GetParam()); }

  const CheckpointScene run_;
};

TEST_P(BlindRank, IsNamedAndNothingIsTouched) {
  train();
  const std::string newest = fmt::format("{}/{}", kFolder, step_name(4));
  const auto cause = [](const std::string& key, const std::string& path) {
    return fmt::format("{}*: {}does not see {}, but {}does;", key, blind(), path, seeing());
  };
  expect_rejected(kFolder, "", cause("checkpoint.resume", newest));
  expect_rejected(kFolder, "checkpoint.resume=" + newest, cause("checkpoint.resume", newest));
  expect_rejected(newest, "checkpoint.resume=none checkpoint.initialize_from=" + newest,
                  cause("checkpoint.initialize_from", newest));
  if (GetParam() != 0) {
    expect_rejected(kFolder, "checkpoint.resume=none",
                    fmt::format("run.output_dir: {}cannot save where {}does, in {}:", blind(),
                                seeing(), kFolder));
  }
  // Whoever sees all goes on.
  const Ended ended = run_.train({.num_ranks = 2, .settings = "train.steps=6"});
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_TRUE(matches(ended.output, "*resuming from *step_00000004 after step 4 *"));
}

TEST_P(BlindRank, IsFoundBeforeTheFirstStepWhereThereIsNoCheckpoint) {
  fs::create_directories(run_.run_folder() / "checkpoints");
  const Ended ended = train_blind(fmt::format("-t tmpfs none {}", kFolder), "");
  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_TRUE(matches(
      ended.errors, fmt::format("*run.output_dir: {}cannot save where {}does*", rank(1), rank(0))))
      << ended.errors;
  EXPECT_EQ(run_.trained().size(), 0U);
  EXPECT_EQ(run_.names(), std::vector<std::string>{});
}

TEST_P(BlindRank, ThatSeesAnotherCopyIsNamed) {
  train();
  // What another run saved at the same steps, in files of the same sizes.
  const Ended other = run_.train({.settings = "train.steps=4 run.seed=8", .run = "other"});
  ASSERT_EQ(other.exit_code, 0) << other.errors;
  const auto before = contents();
  const Ended ended = train_blind(fmt::format("--bind runs/other/checkpoints {}", kFolder), "");
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(matches(ended.errors, fmt::format("*checkpoint.resume*: {}sees another {}/{} (*",
                                                rank(1), kFolder, step_name(4))))
      << ended.errors;
  EXPECT_EQ(contents(), before);
}

INSTANTIATE_TEST_SUITE_P(OfTwo, BlindRank, ::testing::Values(0, 1),
                         [](const auto& rank) { return fmt::format("Rank{}", rank.param); });

}  // namespace
}  // namespace redspine::testing
