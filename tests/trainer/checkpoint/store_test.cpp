#include "trainer/checkpoint/store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/io/folders.h"
#include "tests/support/scratch.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/training_json.h"

namespace redspine {
namespace {

constexpr const char* kOurs = "00000000000000aa";
constexpr const char* kTheirs = "00000000000000bb";

class StoreTest : public testing::Test {
 protected:
  void save(std::int64_t step, const std::string& run_id = kOurs) const {
    const CheckpointStore store(scratch_ / "", run_id);
    const std::string folder = store.begin(step);
    TrainingRecord record;
    record.run_id = run_id;
    write_text(folder + "/training.json", training_to_json(record));
    Manifest manifest;
    manifest.files["training.json"].hash = hash_text("");
    write_text(folder + "/" + kManifestName, manifest_to_json(manifest));
    store.publish(step);
  }
  void save_all(const std::vector<std::int64_t>& steps) const {
    for (const std::int64_t step : steps) save(step);
  }
  void remove_superseded(std::int64_t newest, const Retention& retention) const {
    for (const std::string& path : superseded(newest, retention)) store_.remove(path);
  }
  std::vector<std::string> superseded(std::int64_t newest, const Retention& retention) const {
    return store_.superseded({.step = newest}, retention);
  }
  bool has(const std::string& name) const { return std::filesystem::exists(scratch_ / name); }

  Scratch scratch_;
  CheckpointStore store_{scratch_ / "", kOurs};
};

Retention keeping(std::int64_t num_newest) {
  return {.keep = num_newest, .keep_every = 0, .resumed_from = {}};
}

using Steps = std::vector<std::int64_t>;

TEST_F(StoreTest, OrderIsByNumberNotByTime) {
  save_all({200, 1000, 999});
  EXPECT_EQ(store_.steps(), (Steps{200, 999, 1000}));
  save(123456789012);  // more digits than the name has places
  EXPECT_EQ(store_.steps().back(), 123456789012);
}

TEST_F(StoreTest, ForeignNamesAreNoCheckpoints) {
  for (const char* name : {"step_5", "step_", "step_0000000x", "step_00000005.bak", "notes",
                           "step_99999999999999999999", "step_000000005"}) {
    make_folder(scratch_ / name);
  }
  EXPECT_EQ(store_.steps(), Steps{});
}

TEST_F(StoreTest, AStoreWithoutAFolderIsEmpty) {
  EXPECT_EQ(CheckpointStore(scratch_ / "none", kOurs).steps(), Steps{});
}

TEST_F(StoreTest, RotationKeepsTheNewest) {
  save_all({9, 10, 100, 11});
  EXPECT_EQ(superseded(100, keeping(2)), (std::vector{store_.path_of(9), store_.path_of(10)}));
  remove_superseded(100, keeping(2));
  EXPECT_EQ(store_.steps(), (Steps{11, 100}));
}

TEST_F(StoreTest, KeepZeroKeepsAll) {
  save_all({1, 2, 3, 4, 5});
  EXPECT_EQ(superseded(5, keeping(0)), std::vector<std::string>{});
}

TEST_F(StoreTest, EveryNthStepStaysForEver) {
  save_all({10, 20, 30, 40, 50, 60});
  remove_superseded(60, {.keep = 1, .keep_every = 20, .resumed_from = {}});
  EXPECT_EQ(store_.steps(), (Steps{20, 40, 50, 60})) << "50: a step was applied after it";
}

TEST_F(StoreTest, WhatTheRunResumedFromStays) {
  save_all({1, 2, 3, 4});
  remove_superseded(
      4, {.keep = 1, .keep_every = 0, .resumed_from = store_.folder() + "/./step_00000002/"});
  EXPECT_EQ(store_.steps(), (Steps{2, 3, 4}));
}

TEST_F(StoreTest, TheNewestCheckpointAfterWhichAStepWasAppliedStays) {
  save_all({10, 20, 30});
  remove_superseded(30, keeping(1));
  EXPECT_EQ(store_.steps(), (Steps{20, 30}));
  // Saved after three steps that were not applied, the last of which 30 was saved after as well.
  save(33);
  for (const std::string& path :
       store_.superseded({.step = 33, .num_skipped_in_a_row = 3}, keeping(1))) {
    store_.remove(path);
  }
  EXPECT_EQ(store_.steps(), (Steps{20, 33}));
}

TEST_F(StoreTest, WhatWasSetAsideGoesWhenAsManyNewerOnesHaveComeAsFar) {
  for (int i = 0; i < 3; ++i) {
    save(20);
    store_.set_aside(20);
  }
  save(30, kTheirs);
  store_.set_aside(30);
  save(30);
  scratch_.write("step_00000030/notes.txt", "mine");
  store_.set_aside(30);
  save_all({10});
  remove_superseded(10, keeping(2));
  EXPECT_FALSE(has("step_00000020.aside-1")) << "two newer ones of its step";
  EXPECT_TRUE(has("step_00000020.aside-2")) << "one newer one";
  save_all({20});
  remove_superseded(20, keeping(2));
  EXPECT_FALSE(has("step_00000020.aside-2"));
  EXPECT_TRUE(has("step_00000020.aside-3"));
  save_all({30, 40});
  remove_superseded(40, keeping(2));
  EXPECT_FALSE(has("step_00000020.aside-3"));
  EXPECT_TRUE(has("step_00000030.aside-1")) << "another run's";
  EXPECT_TRUE(has("step_00000030.aside-2")) << "not ours alone";
  EXPECT_EQ(store_.steps(), (Steps{30, 40}));
}

TEST_F(StoreTest, RotationLeavesAloneWhatIsNotOursAlone) {
  save(1, kTheirs);
  save_all({2, 3, 4, 5, 6});
  scratch_.write("step_00000002/tokenizer.json", "{}");
  std::filesystem::remove(scratch_ / "step_00000003/manifest.json");
  scratch_.write("notes.txt", "mine");
  remove_superseded(6, keeping(1));
  EXPECT_EQ(store_.steps(), (Steps{1, 2, 3, 5, 6})) << "5: a step was applied after it";
  EXPECT_TRUE(has("notes.txt"));
  EXPECT_TRUE(has("step_00000002/tokenizer.json"));
}

TEST_F(StoreTest, ADamagedCheckpointDoesNotPushAGoodOneOut) {
  save_all({1, 2, 3, 4});
  scratch_.write("step_00000004/training.json", "{");
  remove_superseded(3, keeping(1));
  EXPECT_EQ(store_.steps(), (Steps{2, 3, 4}));
}

TEST_F(StoreTest, OnlyOurOwnUnfinishedSavesAreCleanedUp) {
  store_.begin(7);
  scratch_.write(fmt::format("step_00000007.{}.partial/model", kOurs), "half");
  CheckpointStore(scratch_ / "", kTheirs).begin(7);
  make_folder(scratch_ / "step_00000008.partial");
  make_folder(scratch_ / fmt::format("notes.{}.partial", kOurs));
  EXPECT_EQ(store_.remove_stale_partials().size(), 1U);
  EXPECT_FALSE(has(fmt::format("step_00000007.{}.partial", kOurs)));
  EXPECT_TRUE(has(fmt::format("step_00000007.{}.partial", kTheirs)));
  EXPECT_TRUE(has("step_00000008.partial"));
  EXPECT_TRUE(has(fmt::format("notes.{}.partial", kOurs)));
}

TEST_F(StoreTest, ANewSaveStartsFromAnEmptyFolder) {
  store_.begin(7);
  scratch_.write(fmt::format("step_00000007.{}.partial/old", kOurs), "half");
  EXPECT_TRUE(names_in(store_.begin(7)).empty());
}

TEST_F(StoreTest, PublishingOverACheckpointSetsThatAside) {
  save(7);
  scratch_.write("step_00000007/mark", "old");
  save(7);
  EXPECT_FALSE(has("step_00000007/mark"));
  EXPECT_TRUE(has("step_00000007.aside-1/mark"));
  save(7);
  EXPECT_TRUE(has("step_00000007.aside-2"));
  EXPECT_EQ(store_.steps(), Steps{7});
}

}  // namespace
}  // namespace redspine
