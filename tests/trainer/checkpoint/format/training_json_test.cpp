#include "trainer/checkpoint/format/training_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Json = nlohmann::ordered_json;

TrainingRecord record() {
  return {.run_id = "0123456789abcdef",
          .progress = {.step = 7, .samples_consumed = 56, .tokens_consumed = 1792},
          .settings = {{"run.seed", "1"}},
          .data = {.training = {{"a.bin", std::int64_t{1} << 40, "aa"}, {"b.bin", 2, "bb"}},
                   .validation = {{"c.bin", 3, "cc"}}},
          .loss = 2.5,
          .validation_loss = {}};
}

TEST(TrainingJson, ReadsWhatItWrites) {
  const TrainingRecord read = training_from_json(training_to_json(record()), "FILE");
  EXPECT_EQ(read.progress, record().progress);
  EXPECT_EQ(read.settings, record().settings);
  EXPECT_EQ(read.data, record().data);
  EXPECT_EQ(read.loss, record().loss);
}

TEST(TrainingJson, OneOfAnEarlierVersionKnowsNoData) {
  Json json = Json::parse(training_to_json(record()));
  json.erase("data");
  EXPECT_EQ(training_from_json(json.dump(), "FILE").data, DataFingerprint{});
}

StateDigests digests() {
  return {.weights = {.low = 1, .high = 2},
          .exp_avg = {.low = 3, .high = 4},
          .exp_avg_sq = {.low = 5, .high = 6},
          .tensors = {{"a", {.low = 1, .high = 2}}, {"exp_avg.a", {.low = 3, .high = 4}}}};
}

TEST(TrainingJson, ReadsTheDigestsThatItWritesOrNone) {
  EXPECT_FALSE(training_from_json(training_to_json(record()), "FILE").digests);
  TrainingRecord with_digests = record();
  with_digests.digests = digests();
  EXPECT_EQ(training_from_json(training_to_json(with_digests), "FILE").digests, digests());
}

TEST(TrainingJson, NamesADigestThatIsNone) {
  TrainingRecord with_digests = record();
  with_digests.digests = digests();
  Json json = Json::parse(training_to_json(with_digests));
  json["digests"]["tensors"]["a"] = "12";
  EXPECT_NE(config_error_of([&] {
              training_from_json(json.dump(), "FILE");
            }).find("FILE: digests: tensors: a: is 12; legal: 32 hexadecimal digits"),
            std::string::npos);
  json["digests"].erase("weights");
  EXPECT_NE(config_error_of([&] {
              training_from_json(json.dump(), "FILE");
            }).find("FILE: digests: weights: is missing"),
            std::string::npos);
}

TEST(TrainingJson, NamesAFileThatIsWrong) {
  const auto error = [](const char* pointer, const Json& value) {
    Json json = Json::parse(training_to_json(record()));
    json[Json::json_pointer(pointer)] = value;
    return config_error_of([&] { training_from_json(json.dump(), "FILE"); });
  };
  EXPECT_NE(error("/data/train", 7).find("FILE: data: train: is 7; legal: a list"),
            std::string::npos);
  EXPECT_NE(error("/data/train/1", 7).find("FILE: data: train[1]: is 7; legal: an object"),
            std::string::npos);
  EXPECT_NE(error("/data/train/1/bytes", -1).find("FILE: data: train[1]: bytes: is -1; legal"),
            std::string::npos);
}

}  // namespace
}  // namespace redspine
