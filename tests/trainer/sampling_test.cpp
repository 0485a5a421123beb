#include "trainer/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace redspine {
namespace {

constexpr int kNumDraws = 20000;

std::vector<int> counts_of(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<int> counts(logits.size());
  for (int position = 0; position < kNumDraws; ++position) {
    ++counts[static_cast<std::size_t>(choose_token(logits, position, options))];
  }
  return counts;
}

/// Within five standard deviations of a binomial count.
void expect_share(int count, double probability) {
  const double mean = kNumDraws * probability;
  EXPECT_NEAR(count, mean, 5.0 * std::sqrt(mean * (1.0 - probability)) + 1.0);
}

TEST(ChooseToken, GreedyTakesTheLikeliestAndOfEqualOnesTheLowest) {
  const std::vector<float> logits = {0.5F, 2.0F, -1.0F, 2.0F, 1.0F};
  for (int position = 0; position < 10; ++position) {
    EXPECT_EQ(choose_token(logits, position, {.temperature = 0.0}), 1);
    EXPECT_EQ(choose_token(logits, position, {.top_k = 1}), 1);
  }
}

TEST(ChooseToken, DrawsFromTheSoftmaxAtItsTemperature) {
  const std::vector<float> logits = {1.0F, -0.5F, 0.25F, 2.0F, -3.0F};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const std::vector<int> counts = counts_of(logits, {.temperature = temperature});
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(logit / temperature);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      expect_share(counts[i], std::exp(logits[i] / temperature) / sum);
    }
  }
}

TEST(ChooseToken, TopKDrawsFromTheLikeliestAlone) {
  const std::vector<float> logits = {1.0F, -0.5F, 0.25F, 2.0F, 0.25F};
  const std::vector<int> counts = counts_of(logits, {.top_k = 3});
  EXPECT_EQ(counts[1], 0);
  EXPECT_EQ(counts[4], 0);  // as likely as token 2, but after it
  const double sum = std::exp(1.0) + std::exp(0.25) + std::exp(2.0);
  expect_share(counts[0], std::exp(1.0) / sum);
  expect_share(counts[2], std::exp(0.25) / sum);
  expect_share(counts[3], std::exp(2.0) / sum);
}

TEST(ChooseToken, IsAFunctionOfSeedAndPosition) {
  const std::vector<float> logits(50, 0.0F);
  std::set<std::int32_t> of_positions;
  std::set<std::int32_t> of_seeds;
  for (int i = 0; i < 40; ++i) {
    of_positions.insert(choose_token(logits, i, {.seed = 3}));
    of_seeds.insert(choose_token(logits, 7, {.seed = static_cast<std::uint64_t>(i)}));
    EXPECT_EQ(choose_token(logits, i, {.seed = 3}), choose_token(logits, i, {.seed = 3}));
  }
  EXPECT_GT(of_positions.size(), 15U);
  EXPECT_GT(of_seeds.size(), 15U);
}

// The layouts' logits differ in their last bits; the text should not.
TEST(ChooseToken, RoundingInTheLogitsAlmostNeverChangesTheChoice) {
  std::vector<float> logits(257);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 13) * 0.3F;
  std::vector<float> rounded = logits;
  for (std::size_t i = 0; i < rounded.size(); i += 2) rounded[i] += 1e-6F;
  int num_changed = 0;
  for (int position = 0; position < 2000; ++position) {
    if (choose_token(logits, position, {}) != choose_token(rounded, position, {})) ++num_changed;
  }
  EXPECT_LE(num_changed, 1);
}

}  // namespace
}  // namespace redspine
