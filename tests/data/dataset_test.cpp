#include "data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

constexpr std::int64_t kLength = 4;  // T

DataConfig raw_config(std::vector<DataFileConfig> train,
                      std::vector<DataFileConfig> validation = {}) {
  return {.train = std::move(train),
          .validation = std::move(validation),
          .format = TokenFormat::raw_u16};
}

TrainingDataOptions options(std::int64_t vocab_size = 65536, std::int64_t global_batch_size = 1) {
  return {.sequence_length = kLength,
          .vocab_size = vocab_size,
          .global_batch_size = global_batch_size,
          .seed = 11};
}

/// Rows [begin, begin + count) as samples of T + 1 tokens.
std::vector<std::vector<std::int32_t>> rows(TrainingData& data, std::int64_t begin,
                                            std::int64_t count) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count * (kLength + 1)));
  data.fill(begin, count, tokens);
  std::vector<std::vector<std::int32_t>> result;
  for (auto at = tokens.begin(); at != tokens.end(); at += kLength + 1) {
    result.emplace_back(at, at + kLength + 1);
  }
  return result;
}

TEST(TrainingData, TellsTheTokensThatAreInNoSample) {
  const Scratch scratch;
  for (const int num_tokens : {383, 385, 3}) {
    scratch.write("part" + std::to_string(num_tokens), bytes_of(counting(num_tokens)));
  }
  constexpr std::int64_t kT = 16;
  TrainingData data(
      raw_config({{scratch / "part*"}}),
      {.sequence_length = kT, .vocab_size = 65536, .global_batch_size = 1, .seed = 11});
  std::map<std::string, std::set<std::int64_t>> used;  // in an epoch
  for (std::int64_t sample = 0; sample < data.num_samples(); ++sample) {
    const SampleOrigin origin = data.origin_of(sample);
    for (std::int64_t i = 0; i <= kT; ++i) used[origin.file.path()].insert(origin.token + i);
  }
  std::map<std::string, std::int64_t> unused;
  for (const auto& [file, count] : data.unused_tokens()) {
    unused[file.path()] = count;
    EXPECT_EQ(count, file.num_tokens() - static_cast<std::int64_t>(used[file.path()].size()));
  }
  EXPECT_EQ(unused, (std::map<std::string, std::int64_t>{{scratch / "part383", 14},
                                                         {scratch / "part3", 3}}));
}

TEST(TrainingData, GivesConsecutiveWindowsThatShareOneToken) {
  const Scratch scratch;
  // 23 tokens: 5 windows of 4 targets, and 2 tokens that are left over.
  TrainingData data(raw_config({{scratch.write("a", bytes_of(counting(23)))}}), options());
  EXPECT_EQ(data.num_samples(), 5);
  std::set<std::int32_t> firsts;
  for (const std::vector<std::int32_t>& row : rows(data, 0, 5)) {
    EXPECT_EQ(row[0] % kLength, 0);
    for (std::int32_t i = 0; i <= kLength; ++i) {
      EXPECT_EQ(row[static_cast<std::size_t>(i)], row[0] + i);
    }
    firsts.insert(row[0]);
  }
  EXPECT_EQ(firsts, (std::set<std::int32_t>{0, 4, 8, 12, 16}));
}

TEST(TrainingData, JoinsGlobbedFilesWithoutCrossingThem) {
  const Scratch scratch;
  scratch.write("part_0", bytes_of(counting(10, 0)));
  scratch.write("part_1", bytes_of(counting(3, 1000)));  // too short for a sample
  scratch.write("part_2", bytes_of(counting(13, 2000)));
  TrainingData data(raw_config({{scratch / "part_*"}}), options());
  EXPECT_EQ(data.num_samples(), 5);
  std::set<std::int32_t> firsts;
  for (const std::vector<std::int32_t>& row : rows(data, 0, 5)) {
    EXPECT_EQ(row[kLength], row[0] + kLength);
    firsts.insert(row[0]);
  }
  EXPECT_EQ(firsts, (std::set<std::int32_t>{0, 4, 2000, 2004, 2008}));
}

TEST(TrainingData, BlendsByWeightFromTheFirstSampleOn) {
  const Scratch scratch;
  TrainingData data(raw_config({{scratch.write("a", bytes_of(counting(100, 0))), 3.0},
                                {scratch.write("b", bytes_of(counting(100, 1000))), 1.0}}),
                    options());
  int num_of_b = 0;
  int num_samples = 0;
  for (const std::vector<std::int32_t>& row : rows(data, 0, 400)) {
    if (row[0] >= 1000) ++num_of_b;
    ++num_samples;
    EXPECT_NEAR(num_of_b, num_samples / 4.0, 0.5);
  }
}

TEST(TrainingData, GivesAnyRangeAsOneReadingWould) {
  const Scratch scratch;
  TrainingData data(raw_config({{scratch.write("a", bytes_of(counting(200, 0))), 0.7},
                                {scratch.write("b", bytes_of(counting(60, 1000))), 0.3}}),
                    options());
  const auto all = rows(data, 0, 300);
  for (const std::int64_t begin : {290, 0, 100, 99, 7}) {
    const auto some = rows(data, begin, 10);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + begin)) << "from " << begin;
  }
}

TEST(TrainingData, NeedsTokensForOneSample) {
  const Scratch scratch;
  const std::string a = scratch.write("a", bytes_of(counting(4)));
  const std::string b = scratch.write("b_0", bytes_of(counting(2)));
  const std::string c = scratch.write("c", bytes_of(counting(5)));
  EXPECT_EQ(config_error_of([&] {
              TrainingData(raw_config({{a}, {scratch / "b_*"}, {c}}), options());
            }),
            "data.train[0].path: " + a +
                ": has 4 tokens; one sample of batch.sequence_length 4 needs 5\n"
                "data.train[1].path: " +
                scratch / "b_*" + ": has 2 tokens; one sample of batch.sequence_length 4 needs 5");
}

TEST(TrainingData, NeedsTokensForOneStep) {
  const Scratch scratch;
  const std::string path = scratch.write("a", bytes_of(counting(33)));
  EXPECT_EQ(config_error_of([&] { TrainingData(raw_config({{path}}), options(65536, 9)); }),
            "data.train: has 8 samples of 5 tokens; one step of batch.global_batch_size needs 9, "
            "that is, 37 tokens of one file");
  EXPECT_NO_THROW(TrainingData(raw_config({{path}}), options(65536, 8)));
}

TEST(TrainingData, NamesAllBadFilesInOneGo) {
  const Scratch scratch;
  const std::string odd = scratch.write("odd", "abc");
  const std::string missing = scratch / "missing";
  const std::string message = config_error_of([&] {
    TrainingData(raw_config({{odd}, {missing}}), options());
  });
  EXPECT_NE(message.find("data.train[0].path: " + odd + ": is 3 bytes"), std::string::npos);
  EXPECT_NE(message.find("\ndata.train[1].path: " + missing + ": does not exist"),
            std::string::npos)
      << message;
}

TEST(TrainingData, ScansSmallFilesForIdsOutsideTheVocabularyAtOnce) {
  const Scratch scratch;
  std::vector<std::uint16_t> ids = counting(200000, 0);
  std::fill(ids.begin(), ids.end(), std::uint16_t{3});
  ids.back() = 257;  // after the last whole sample, and beyond the first block of the scan
  const std::string path = scratch.write("a", bytes_of(ids));
  EXPECT_EQ(config_error_of([&] { TrainingData(raw_config({{path}}), options(257)); }),
            "data.train[0].path: " + path +
                ": token 199999 has id 257; legal with model.vocab_size 257: 0 to 256");
  EXPECT_EQ(config_error_of([&] { ValidationData(raw_config({}, {{path}}), kLength, 257); }),
            "data.validation[0].path: " + path +
                ": token 199999 has id 257; legal with model.vocab_size 257: 0 to 256");
}

TEST(TrainingData, ChecksIdsOfLargeFilesWhenTheyAreRead) {
  const Scratch scratch;
  const std::string path = scratch.write("big", "");
  std::filesystem::resize_file(path, (std::uintmax_t{64} << 20) + 2);  // zeros, one token too large
  {
    std::FILE* file = std::fopen(path.c_str(), "r+b");
    const std::uint16_t id = 999;
    std::fseek(file, -200, SEEK_END);
    std::fwrite(&id, 2, 1, file);
    std::fclose(file);
  }
  TrainingDataOptions long_samples = options(257);
  long_samples.sequence_length = (std::int64_t{1} << 25) / 8;
  TrainingData data(raw_config({{path}}), long_samples);
  std::vector<std::int32_t> row(static_cast<std::size_t>(long_samples.sequence_length + 1));
  const std::string message = config_error_of([&] {
    for (std::int64_t sample = 0; sample < data.num_samples(); ++sample) data.fill(sample, 1, row);
  });
  EXPECT_NE(message.find(path + ": token 33554333 has id 999; legal"), std::string::npos)
      << message;
}

struct Window {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
};

Window window(const ValidationData& data, std::int64_t begin, std::int64_t count) {
  const auto size = static_cast<std::size_t>(count * data.sequence_length());
  Window result{std::vector<std::int32_t>(size), std::vector<std::int32_t>(size)};
  data.fill(begin, count, result.tokens, result.targets);
  return result;
}

TEST(ValidationData, CoversEachTokenOnce) {
  const Scratch scratch;
  // Whole windows; a short last one; a single target; no target at all; exactly one window.
  std::vector<DataFileConfig> files;
  std::multiset<std::int32_t> expected;
  int first = 0;
  for (const std::size_t num_tokens : {9u, 11u, 2u, 1u, 5u}) {
    files.push_back({scratch.write(std::to_string(first), bytes_of(counting(num_tokens, first)))});
    for (std::size_t i = 1; i < num_tokens; ++i) expected.insert(first + static_cast<int>(i));
    first += 1000;
  }
  const ValidationData data(raw_config({}, files), kLength, 65536);
  EXPECT_EQ(data.num_tokens(), 8 + 10 + 1 + 0 + 4);
  EXPECT_EQ(data.num_windows(), 2 + 3 + 1 + 0 + 1);

  const Window all = window(data, 0, data.num_windows());
  std::multiset<std::int32_t> targets;
  for (std::size_t i = 0; i < all.targets.size(); ++i) {
    if (all.targets[i] == -1) {
      EXPECT_EQ(all.tokens[i], 0);
      continue;
    }
    EXPECT_EQ(all.targets[i], all.tokens[i] + 1);
    targets.insert(all.targets[i]);
  }
  EXPECT_EQ(targets, expected);
}

TEST(ValidationData, PadsTheLastWindowOfAFile) {
  const Scratch scratch;
  const ValidationData data(raw_config({}, {{scratch.write("a", bytes_of(counting(7, 10)))}}),
                            kLength, 65536);
  const Window last = window(data, 1, 1);
  EXPECT_EQ(last.tokens, (std::vector<std::int32_t>{14, 15, 0, 0}));
  EXPECT_EQ(last.targets, (std::vector<std::int32_t>{15, 16, -1, -1}));
}

TEST(ValidationData, GivesAnyRangeAsOneReadingWould) {
  const Scratch scratch;
  const ValidationData data(raw_config({}, {{scratch.write("a", bytes_of(counting(50)))},
                                            {scratch.write("b", bytes_of(counting(31)))}}),
                            kLength, 65536);
  const Window all = window(data, 0, data.num_windows());
  for (std::int64_t w = 0; w < data.num_windows(); ++w) {
    const Window one = window(data, w, 1);
    EXPECT_TRUE(std::equal(one.tokens.begin(), one.tokens.end(), all.tokens.begin() + w * kLength));
    EXPECT_TRUE(
        std::equal(one.targets.begin(), one.targets.end(), all.targets.begin() + w * kLength));
  }
}

TEST(ValidationData, MayBeAbsent) {
  const ValidationData data(raw_config({}), kLength, 257);
  EXPECT_EQ(data.num_windows(), 0);
  EXPECT_EQ(data.num_tokens(), 0);
}

TEST(ValidationData, NeedsATarget) {
  const Scratch scratch;
  const std::string path = scratch.write("a", bytes_of(counting(1)));
  EXPECT_EQ(config_error_of([&] { ValidationData(raw_config({}, {{path}}), kLength, 257); }),
            "data.validation: no file has more than 1 token; a target needs 2");
}

TEST(SampleHash, IsThatOfTheTokensInTheirOrder) {
  const std::vector<std::int32_t> tokens = {1, 2, 3};
  const std::vector<std::int32_t> other = {1, 3, 2};
  EXPECT_EQ(sample_hash(tokens), sample_hash(std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_NE(sample_hash(tokens), sample_hash(other));
}

}  // namespace
}  // namespace redspine
