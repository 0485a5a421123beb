// Dropout of attention probabilities: how many, scaled by how much, and of what it is a function.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/tensor/attention_run.h"

namespace redspine {
namespace {

// With zero queries and values that are the unit vectors, the context is dropped(P) itself.
AttentionOutputs observe_mask(const AttentionCase& c) {
  AttentionInputs inputs{
      std::vector<float>(static_cast<std::size_t>(c.batch() * c.length * c.qkv_size())),
      normal_values(c.batch() * c.length * c.context_size(), 3)};
  for (std::int64_t row = 0; row < c.batch() * c.length; ++row) {
    const std::int64_t value = 2 * c.heads.head_size + row % c.length;
    inputs.qkv[static_cast<std::size_t>(row * c.qkv_size() + value)] = 1.0F;
  }
  return run_attention(c, inputs);
}

TEST(AttentionDropout, DropsTheStatedShareAndScalesTheRest) {
  const AttentionCase c{
      .length = 160, .heads = plain_heads(1, 160), .samples = {12, 13}, .probability = 0.25F};
  const AttentionOutputs outputs = observe_mask(c);
  std::int64_t num_dropped = 0;
  std::int64_t num_seen = 0;
  for (std::int64_t row = 0; row < c.batch() * c.length; ++row) {
    const std::int64_t query = row % c.length;
    for (std::int64_t key = 0; key < c.length; ++key) {
      const float p = outputs.context[static_cast<std::size_t>(row * c.length + key)];
      if (key > query) {
        ASSERT_EQ(p, 0.0F);
        continue;
      }
      ++num_seen;
      num_dropped += p == 0.0F ? 1 : 0;
      const double kept = 1.0 / 0.75 / static_cast<double>(query + 1);
      EXPECT_NEAR(p, p == 0.0F ? 0.0 : kept, 1e-6);
    }
  }
  // Five standard deviations of a binomial count.
  EXPECT_NEAR(static_cast<double>(num_dropped), 0.25 * static_cast<double>(num_seen),
              5.0 * std::sqrt(0.25 * 0.75 * static_cast<double>(num_seen)));
}

TEST(AttentionDropout, BelongsToTheSampleAndNotToItsPlaceInTheBatch) {
  AttentionCase c{
      .length = 40, .heads = plain_heads(1, 40), .samples = {3, 1000, 3}, .probability = 0.5F};
  const AttentionOutputs outputs = observe_mask(c);
  const auto row = [&](std::int64_t b) {
    const auto first = outputs.context.begin() + b * c.length * c.context_size();
    return std::vector<float>(first, first + c.length * c.context_size());
  };
  EXPECT_TRUE(row(0) == row(2));
  EXPECT_FALSE(row(0) == row(1));
}

TEST(AttentionDropout, DiffersBetweenHeadsKeysAndSamplesThatAgreeInTheirLow32Bits) {
  AttentionCase c{.length = 40, .heads = plain_heads(1, 40), .samples = {3}, .probability = 0.5F};
  const AttentionOutputs outputs = observe_mask(c);
  c.samples = {3 + (std::int64_t{1} << 32)};
  EXPECT_FALSE(observe_mask(c) == outputs);
  c.samples = {3};
  c.key += 1;
  EXPECT_FALSE(observe_mask(c) == outputs);
  c.key -= 1;
  c.heads.first_query = 1;
  EXPECT_FALSE(observe_mask(c) == outputs);
  c.heads.first_query = 0;
  EXPECT_TRUE(observe_mask(c) == outputs);
}

TEST(AttentionDropout, CountsSamplesBeyond32Bits) {
  expect_agreement({.length = 30,
                    .heads = {2, 2, 8, 1, 3},
                    .samples = {(std::int64_t{9} << 32) + 5, (std::int64_t{1} << 47) + 5},
                    .probability = 0.4F});
}

TEST(AttentionDropout, IsTheSameForAHeadOnAnyRank) {
  AttentionCase c{.length = 50, .heads = plain_heads(3, 8), .samples = {8}, .probability = 0.3F};
  const AttentionInputs inputs = random_inputs(c);
  const AttentionOutputs all = run_attention(c, inputs);
  for (std::int64_t head = 0; head < 3; ++head) {
    AttentionCase part = c;
    part.heads = {1, 1, 8, 1, head};
    AttentionInputs slice{std::vector<float>(std::size_t{50} * 24),
                          std::vector<float>(std::size_t{50} * 8)};
    for (std::int64_t t = 0; t < 50; ++t) {
      for (std::int64_t place = 0; place < 3; ++place) {
        std::copy_n(inputs.qkv.begin() + t * 72 + (place * 3 + head) * 8, 8,
                    slice.qkv.begin() + t * 24 + place * 8);
      }
    }
    const AttentionOutputs outputs = run_attention(part, slice);
    for (std::int64_t t = 0; t < 50; ++t) {
      for (std::int64_t i = 0; i < 8; ++i) {
        EXPECT_NEAR(outputs.context[static_cast<std::size_t>(t * 8 + i)],
                    all.context[static_cast<std::size_t>(t * 24 + head * 8 + i)], 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace redspine
