#include "trainer/checkpoint/format/manifest.h"

#include <gtest/gtest.h>

#include "tests/support/scratch.h"
#include "trainer/checkpoint/format/training_json.h"

namespace redspine {
namespace {

Manifest example() {
  return {.files = {{"config.json", {.bytes = 3, .hash = hash_text("abc"), .tensors = {}}},
                    {"model-00001-of-00001.safetensors",
                     {.bytes = 1LL << 40,
                      .hash = hash_text("header"),
                      .tensors = {{"a.weight", hash_text("1")}, {"b", hash_text("2")}}}}}};
}

TEST(Manifest, IsReadBackAsItWasWritten) {
  EXPECT_EQ(manifest_from_json(manifest_to_json(example()), "m"), example());
}

TEST(Manifest, HashesAreThoseOfXxh3) {
  EXPECT_EQ(hash_text(""), "99aa06d3014798d86001c324468d497f");  // xxhsum -H2 of nothing
}

TEST(Manifest, EveryProblemNamesFileAndKey) {
  const auto error_after = [](const std::string& from, const std::string& to) {
    std::string text = manifest_to_json(example());
    text.replace(text.find(from), from.size(), to);
    return config_error_of([&] { manifest_from_json(text, "DIR/manifest.json"); });
  };
  EXPECT_EQ(error_after("\"format_version\": 1", "\"format_version\": 2"),
            "DIR/manifest.json: format_version: is 2; legal: 1");
  EXPECT_EQ(error_after("\"bytes\": 3", "\"bytes\": \"3\""),
            "DIR/manifest.json: files: config.json: bytes: is \"3\"; legal: a whole number");
  EXPECT_EQ(error_after("\"files\"", "\"fires\""), "DIR/manifest.json: files: is missing");
  EXPECT_EQ(error_after("config.json", "../config.json"),
            "DIR/manifest.json: files: ../config.json: is a path; legal: a file of this directory");
  EXPECT_NE(error_after(hash_text("abc"), "xyz").find("32 hexadecimal digits"), std::string::npos);
  EXPECT_EQ(error_after("{", ""), "DIR/manifest.json: is no JSON object");
}

TEST(Manifest, ADirectoryWithoutOneIsIncomplete) {
  const Scratch scratch;
  const std::string error = config_error_of([&] { read_manifest(scratch / ""); });
  EXPECT_NE(error.find("is no complete checkpoint"), std::string::npos) << error;
}

TEST(TrainingRecord, IsReadBackAsItWasWritten) {
  const TrainingRecord record{.run_id = "0123456789abcdef",
                              .progress = {.step = 7,
                                           .samples_consumed = 1LL << 60,
                                           .tokens_consumed = 3,
                                           .num_updates = 6,
                                           .num_skipped_in_a_row = 1,
                                           .is_evaluation_pending = true},
                              .num_data_ranks = 2,
                              .num_tensor_ranks = 4,
                              .settings = {{"run.seed", "1"}, {"data.train", "[{path: \"x\"}]"}},
                              .loss = 0.1,
                              .validation_loss = std::nullopt};
  const TrainingRecord back = training_from_json(training_to_json(record), "t");
  EXPECT_EQ(back.run_id, record.run_id);
  EXPECT_EQ(back.progress, record.progress);
  EXPECT_EQ(back.num_data_ranks, 2);
  EXPECT_EQ(back.num_tensor_ranks, 4);
  EXPECT_EQ(back.settings, record.settings);
  EXPECT_EQ(back.loss, record.loss);
  EXPECT_FALSE(back.validation_loss.has_value());
}

TEST(TrainingRecord, NegativeCountsAreRejected) {
  std::string text = training_to_json({});
  const std::string from = "\"samples_consumed\": 0";
  text.replace(text.find(from), from.size(), "\"samples_consumed\": -1");
  EXPECT_EQ(config_error_of([&] { training_from_json(text, "T"); }),
            "T: samples_consumed: is -1; legal: at least 0");
}

}  // namespace
}  // namespace redspine
