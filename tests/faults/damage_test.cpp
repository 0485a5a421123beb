// The newest checkpoint is damaged, in every way that disks and people know: `auto` says what is
// wrong and goes on from the one before, an explicit directory is an error.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/support/checkpoint_scene.h"
#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNewest = 4;

struct Damage {
  const char* name;
  std::function<void(const fs::path&)> apply;  // to a file
  bool touches_the_end_alone = false;
};

void flip_bit(const fs::path& path, std::uintmax_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  char byte = 0;
  file.seekg(static_cast<std::streamoff>(offset)).get(byte);
  byte = static_cast<char>(byte ^ 0x10);
  file.seekp(static_cast<std::streamoff>(offset)).put(byte);
  ASSERT_TRUE(file.flush());
}

std::vector<Damage> damages() {
  return {
      {"deleted", [](const fs::path& path) { fs::remove(path); }},
      {"emptied", [](const fs::path& path) { fs::resize_file(path, 0); }},
      {"one byte short", [](const fs::path& path) { fs::resize_file(path, file_size(path) - 1); },
       true},
      {"cut in half", [](const fs::path& path) { fs::resize_file(path, file_size(path) / 2); }},
      {"one byte long", [](const fs::path& path) { fs::resize_file(path, file_size(path) + 1); },
       true},
      {"a bit of its head flipped", [](const fs::path& path) { flip_bit(path, 1); }},
      {"a bit of its middle flipped",
       [](const fs::path& path) { flip_bit(path, file_size(path) / 2); }},
      {"its last bit flipped", [](const fs::path& path) { flip_bit(path, file_size(path) - 1); },
       true},
  };
}

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    const Ended ended = run_.train({.settings = fmt::format("train.steps={}", kNewest)});
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    fs::rename(run_.run_folder(), kept());
  }

  fs::path kept() const { return run_.path("kept"); }
  static std::string newest() { return "runs/run/checkpoints/" + step_name(kNewest); }

  /// A run whose newest checkpoint is whole.
  void renew() const {
    fs::remove_all(run_.run_folder());
    fs::copy(kept(), run_.run_folder(), fs::copy_options::recursive);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(kept() / "checkpoints" / step_name(kNewest))) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  static Start resume(const std::string& settings = "") {
    return {.settings = fmt::format("train.steps={} {}", kNewest, settings)};
  }

  const CheckpointScene run_;
};

TEST_F(DamageTest, IsSkippedWithAWarningThatSaysWhatIsWrong) {
  renew();
  const std::vector<std::string> expected = run_.trained();
  ASSERT_EQ(files().size(), 7U);
  for (const std::string& file : files()) {
    for (const Damage& damage : damages()) {
      SCOPED_TRACE(file + " " + damage.name);
      const bool is_manifest = file == "manifest.json";
      if (is_manifest && damage.touches_the_end_alone) continue;  // after the last word
      renew();
      damage.apply(run_.checkpoint(kNewest) / file);
      const Ended ended = run_.train(resume());
      EXPECT_EQ(ended.exit_code, 0) << ended.errors;
      // A manifest that is wrong may put the blame on a file that is not.
      EXPECT_TRUE(matches(ended.errors, fmt::format("*warning: skipped the checkpoint {}: *{}*",
                                                    newest(), is_manifest ? "" : file)))
          << ended.errors;
      EXPECT_TRUE(matches(ended.output,
                          fmt::format("*resuming from runs/run/checkpoints/{} after step {} *",
                                      step_name(kNewest - 1), kNewest - 1)))
          << ended.output;
      EXPECT_EQ(run_.trained(), expected);
      // The damaged one makes room for the good one, but is not deleted: it may be of use.
      EXPECT_TRUE(fs::exists(run_.checkpoint(kNewest).string() + ".aside-1"));
    }
  }
}

// Damage may pass, as that of a file system that cannot be reached does, and training has gone on
// from elsewhere by then.
TEST_F(DamageTest, IsSetAsideAlsoWhereNothingTakesItsPlace) {
  renew();
  fs::remove(run_.checkpoint(kNewest) / "manifest.json");
  const Ended ended = run_.train({.settings = fmt::format("train.steps={}", kNewest - 1)});
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(run_.newest_step(), kNewest - 1);
  EXPECT_TRUE(fs::exists(run_.checkpoint(kNewest).string() + ".aside-1"));
}

TEST_F(DamageTest, IsAnErrorWhereTheUserNamesTheDirectory) {
  for (const std::string& file : files()) {
    renew();
    flip_bit(run_.checkpoint(kNewest) / file, 20);
    const Ended ended = run_.train(resume("checkpoint.resume=" + newest()));
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_TRUE(matches(ended.errors, fmt::format("*checkpoint.resume*{}*{}*", newest(), file)))
        << ended.errors;
  }
  renew();
  fs::remove_all(run_.checkpoint(kNewest));
  const Ended ended = run_.train(resume("checkpoint.resume=" + newest()));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(matches(ended.errors, fmt::format("*checkpoint.resume*{}*", newest())))
      << ended.errors;
  EXPECT_EQ(run_.newest_step(), kNewest - 1) << "nothing was touched";
}

TEST_F(DamageTest, OfAllCheckpointsIsAnErrorAndNothingIsTouched) {
  renew();
  const std::vector<std::string> expected = run_.trained();
  for (const std::int64_t step : run_.steps()) {
    fs::remove(run_.checkpoint(step) / "manifest.json");
  }
  const std::vector<std::string> names = run_.names();
  const Ended ended = run_.train(resume());
  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_TRUE(matches(ended.errors,
                      "*warning: skipped*\n*warning: skipped*\n*checkpoint.resume*: none of the 2 "
                      "checkpoints in runs/run/checkpoints can be used*"))
      << ended.errors;
  EXPECT_EQ(run_.trained(), expected);
  EXPECT_EQ(run_.names(), names);

  const Ended anew = run_.train(resume("checkpoint.resume=none"));
  EXPECT_EQ(anew.exit_code, 0) << anew.errors;
  EXPECT_EQ(run_.trained(), expected);
  EXPECT_TRUE(fs::exists(run_.checkpoint(kNewest).string() + ".aside-1"));
}

// As where their file system is not mounted on any host.
TEST_F(DamageTest, LossOfTheWholeFolderIsAnErrorAndNothingIsTouched) {
  renew();
  const std::vector<std::string> expected = run_.trained();
  for (const std::int64_t step : run_.steps()) fs::remove_all(run_.checkpoint(step));
  const Ended ended = run_.train(resume());
  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_TRUE(matches(ended.errors,
                      "*checkpoint.resume*: runs/run/metrics.jsonl lists checkpoints, but "
                      "runs/run/checkpoints has none*"))
      << ended.errors;
  EXPECT_EQ(run_.trained(), expected);
  EXPECT_EQ(run_.train(resume("checkpoint.resume=none")).exit_code, 0);
}

TEST_F(DamageTest, WithoutHashesIsFoundWhereSizesShowIt) {
  renew();
  fs::resize_file(run_.checkpoint(kNewest) / "model-00001-of-00001.safetensors", 1000);
  const Ended ended = run_.train(resume("checkpoint.verify=false"));
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("warning: skipped"), std::string::npos) << ended.errors;
}

// A disk that gives back something else than it took: the kernel knows of no error.
TEST(AWrite, ThatWentWrongIsFoundBeforeAnOlderCheckpointGoes) {
  for (const char* is_async : {"true", "false"}) {
    for (const int num_ranks : {1, 2}) {
      SCOPED_TRACE(fmt::format("async={} ranks={}", is_async, num_ranks));
      const CheckpointScene run;
      const Start start{.num_ranks = num_ranks,
                        .settings = fmt::format("train.steps=4 checkpoint.async={}", is_async)};
      Start broken = start;
      broken.variables = fmt::format("LD_PRELOAD={} CRASH_BELOW={} CRASH_FLIP=step_00000003",
                                     REDSPINE_CRASH_SHIM, run.checkpoints().string());
      const Ended ended = run.train(broken);
      EXPECT_EQ(ended.exit_code, 1);
      EXPECT_TRUE(matches(ended.errors,
                          "*step_00000003 is damaged right after it was written, so older "
                          "checkpoints stay: *safetensors: *differs from what was written*"))
          << ended.errors;
      EXPECT_EQ(run.steps(), (std::vector<std::int64_t>{1, 2, 3}));

      const Ended again = run.train(start);
      EXPECT_EQ(again.exit_code, 0) << again.errors;
      EXPECT_TRUE(matches(again.errors, "*warning: skipped the checkpoint *step_00000003: *"))
          << again.errors;
      EXPECT_TRUE(matches(again.output, "*resuming from *step_00000002 after step 2 *"));
    }
  }
}

}  // namespace
}  // namespace redspine::testing
