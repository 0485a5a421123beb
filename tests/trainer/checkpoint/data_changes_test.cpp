#include "trainer/checkpoint/data_changes.h"

#include <gtest/gtest.h>

namespace redspine {
namespace {

using Lines = std::vector<std::string>;

Lines change_of_training(const std::vector<FileFingerprint>& before,
                         const std::vector<FileFingerprint>& after) {
  return changed_data({.training = before}, {.training = after});
}

const FileFingerprint kFirst = {"a.bin", 100, "aa"};
const FileFingerprint kSecond = {"b.bin", 200, "bb"};

TEST(DataChanges, AreNoneWhereNothingChanged) {
  EXPECT_EQ(change_of_training({kFirst, kSecond}, {kFirst, kSecond}), Lines{});
}

TEST(DataChanges, NameEachFileAndWhatBecameOfIt) {
  const std::string effect = ": other samples come next)";
  EXPECT_EQ(change_of_training({kFirst, kSecond}, {kFirst, {"b.bin", 300, "cc"}}),
            Lines{"data.train: b.bin: 200 bytes -> 300 bytes (grown" + effect});
  EXPECT_EQ(change_of_training({kFirst, kSecond}, {kFirst, {"b.bin", 150, "cc"}}),
            Lines{"data.train: b.bin: 200 bytes -> 150 bytes (shrunk" + effect});
  EXPECT_EQ(change_of_training({kFirst, kSecond}, {kFirst, {"b.bin", 200, "cc"}}),
            Lines{"data.train: b.bin: hash bb -> cc (replaced" + effect});
  EXPECT_EQ(change_of_training({kFirst}, {kFirst, kSecond}),
            Lines{"data.train: b.bin: none -> 200 bytes (added" + effect});
  EXPECT_EQ(change_of_training({kFirst, kSecond}, {kSecond}),
            Lines{"data.train: a.bin: 100 bytes -> none (removed" + effect});
  EXPECT_EQ(change_of_training({kFirst, kSecond}, {kSecond, {"c.bin", 100, "aa"}}),
            Lines{"data.train: a.bin: -> c.bin (renamed" + effect});
  EXPECT_EQ(changed_data({.training = {kFirst}, .validation = {kSecond}},
                         {.training = {kFirst}, .validation = {{"b.bin", 300, "bb"}}}),
            Lines{"data.validation: b.bin: 200 bytes -> 300 bytes (grown: the validation loss is "
                  "that of other tokens)"});
}

TEST(DataChanges, AFolderThatMovedIsNone) {
  EXPECT_EQ(change_of_training({kFirst, kSecond},
                               {{"other/a.bin", 100, "aa"}, {"other/b.bin", 200, "bb"}}),
            Lines{});
}

TEST(DataChanges, AFileOfTwoEntriesIsToldOnce) {
  const FileFingerprint grown = {"a.bin", 300, "cc"};
  EXPECT_EQ(change_of_training({kFirst, kFirst}, {grown, grown}).size(), 1U);
}

TEST(DataChanges, AListThatACheckpointDoesNotKnowIsNone) {
  EXPECT_EQ(changed_data({}, {.training = {kFirst}, .validation = {kSecond}}), Lines{});
}

}  // namespace
}  // namespace redspine
