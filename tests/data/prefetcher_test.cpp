#include "data/prefetcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

constexpr std::int64_t kLength = 4;  // T
constexpr std::int64_t kBatch = 12;  // G

class PrefetcherTest : public testing::Test {
 protected:
  PrefetcherTest()
      : path_(scratch_.write("a", bytes_of(counting(1000)))),
        data_({.train = {{path_, 0.8}, {scratch_.write("b", bytes_of(counting(500, 2000))), 0.2}},
               .format = TokenFormat::raw_u16},
              {.sequence_length = kLength,
               .vocab_size = 65536,
               .global_batch_size = kBatch,
               .seed = 4}) {}

  PrefetcherOptions options(std::int64_t samples_consumed = 0, int data_rank = 0,
                            int num_data_ranks = 1) {
    return {.samples_consumed = samples_consumed,
            .global_batch_size = kBatch,
            .data_rank = data_rank,
            .num_data_ranks = num_data_ranks};
  }

  std::vector<Batch> take(const PrefetcherOptions& prefetcher_options, int count) {
    Prefetcher prefetcher(data_, prefetcher_options);
    std::vector<Batch> batches;
    batches.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) batches.push_back(prefetcher.next());
    return batches;
  }

  Scratch scratch_;
  std::string path_;
  TrainingData data_;
};

TEST_F(PrefetcherTest, GivesTheSamplesInTheirOrder) {
  const std::vector<Batch> batches = take(options(), 40);
  for (std::size_t b = 0; b < batches.size(); ++b) {
    const auto first = static_cast<std::int64_t>(b) * kBatch;
    EXPECT_EQ(batches[b].first_sample, first);
    std::vector<std::int32_t> expected(static_cast<std::size_t>(kBatch * (kLength + 1)));
    data_.fill(first, kBatch, expected);
    EXPECT_EQ(batches[b].tokens, expected);
    ASSERT_EQ(batches[b].samples.size(), static_cast<std::size_t>(kBatch));
    EXPECT_EQ(batches[b].samples.front(), first);
    EXPECT_EQ(batches[b].samples.back(), first + kBatch - 1);
  }
}

TEST_F(PrefetcherTest, SplitsABatchOverTheDataRanksWhateverTheirNumber) {
  constexpr int kNumBatches = 30;
  const std::vector<Batch> whole = take(options(), kNumBatches);
  for (const int num_data_ranks : {2, 3, 4, 12}) {
    std::vector<Batch> joined(kNumBatches);
    for (int rank = 0; rank < num_data_ranks; ++rank) {
      const std::vector<Batch> share = take(options(0, rank, num_data_ranks), kNumBatches);
      for (std::size_t b = 0; b < share.size(); ++b) {
        EXPECT_EQ(share[b].first_sample, whole[b].first_sample);
        joined[b].tokens.insert(joined[b].tokens.end(), share[b].tokens.begin(),
                                share[b].tokens.end());
        joined[b].samples.insert(joined[b].samples.end(), share[b].samples.begin(),
                                 share[b].samples.end());
        joined[b].hash += share[b].hash;
      }
    }
    for (std::size_t b = 0; b < joined.size(); ++b) {
      EXPECT_EQ(joined[b].samples, whole[b].samples);  // so they are disjoint and complete
      EXPECT_EQ(joined[b].tokens, whole[b].tokens);
      EXPECT_EQ(joined[b].hash, whole[b].hash) << num_data_ranks << " data ranks, batch " << b;
    }
  }
}

TEST_F(PrefetcherTest, ResumesAsIfItHadNotStopped) {
  const std::vector<Batch> whole = take(options(), 60);
  for (const std::size_t start : {1u, 7u, 59u}) {
    const std::vector<Batch> rest = take(options(static_cast<std::int64_t>(start) * kBatch),
                                         static_cast<int>(whole.size() - start));
    for (std::size_t b = 0; b < rest.size(); ++b) {
      EXPECT_EQ(rest[b].tokens, whole[start + b].tokens);
      EXPECT_EQ(rest[b].samples, whole[start + b].samples);
      EXPECT_EQ(rest[b].hash, whole[start + b].hash);
    }
  }
}

TEST_F(PrefetcherTest, HashesABatchAsTheSumOverItsSamples) {
  const Batch batch = take(options(), 1)[0];
  std::uint64_t sum = 0;
  for (std::size_t row = 0; row < batch.samples.size(); ++row) {
    sum += sample_hash(std::span(batch.tokens).subspan(row * (kLength + 1), kLength + 1));
  }
  EXPECT_EQ(batch.hash, sum);
  EXPECT_NE(batch.hash, 0u);
}

TEST_F(PrefetcherTest, PassesOnWhatStoppedItsThreadAfterTheBatchesBefore) {
  std::filesystem::resize_file(path_, 1900);
  std::int64_t num_good = 0;
  std::vector<std::int32_t> sample(kLength + 1);
  const std::string expected = error_of([&] {
    for (;; ++num_good) data_.fill(num_good, 1, sample);
  });
  ASSERT_NE(expected.find(path_ + ": was 2000 bytes"), std::string::npos) << expected;

  PrefetcherOptions one_by_one = options();
  one_by_one.global_batch_size = 1;
  // So that the bad sample comes third: the thread meets it while two good ones wait.
  ASSERT_GE(num_good, 2);
  one_by_one.samples_consumed = num_good - 2;
  Prefetcher prefetcher(data_, one_by_one);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (std::int64_t i = one_by_one.samples_consumed; i < num_good; ++i) {
    EXPECT_EQ(prefetcher.next().first_sample, i);
  }
  for (int call = 0; call < 2; ++call) {  // the second finds the thread long gone
    EXPECT_EQ(error_of([&] { prefetcher.next(); }), expected);
  }
}

TEST_F(PrefetcherTest, StopsPromptlyHoweverFarItIs) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    Prefetcher prefetcher(data_, options());
    if (i % 2 == 0) prefetcher.next();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace redspine
