// The attention kernels against their definition in double, and the promises that hold bit for
// bit: causality, any number of threads, any place in the batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/tensor/attention_run.h"

namespace redspine {
namespace {

TEST(AttentionReference, GradientAgreesWithCentralDifferences) {
  for (const float probability : {0.0F, 0.3F}) {
    const AttentionCase c{.length = 6,
                          .heads = {.num_heads = 2,
                                    .num_kv_heads = 2,
                                    .head_size = 4,
                                    .queries_per_kv = 3,
                                    .first_query = 2},
                          .samples = {7, 3},
                          .probability = probability};
    const AttentionInputs inputs = random_inputs(c);
    std::vector<double> qkv = widened(inputs.qkv);
    const std::vector<double> dcontext = widened(inputs.dcontext);
    const std::vector<double> gradient = reference_attention_gradient(c, qkv, dcontext);
    const auto loss = [&] {
      const std::vector<double> context = reference_attention(c, qkv).context;
      double sum = 0.0;
      for (std::size_t i = 0; i < context.size(); ++i) sum += context[i] * dcontext[i];
      return sum;
    };
    constexpr double kStep = 1e-5;
    for (std::size_t i = 0; i < qkv.size(); ++i) {
      const double value = qkv[i];
      qkv[i] = value + kStep;
      const double above = loss();
      qkv[i] = value - kStep;
      const double below = loss();
      qkv[i] = value;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-8) << i;
    }
  }
}

TEST(Attention, AgreesWithItsDefinitionAtAnyLength) {
  for (const std::int64_t length : {1, 2, 3, 5, 17, 63, 64, 65, 127, 128, 129, 191, 192, 200}) {
    for (const float probability : {0.0F, 0.2F}) {
      expect_agreement({.length = length,
                        .heads = plain_heads(2, 16),
                        .samples = {11, 4},
                        .probability = probability});
    }
  }
}

TEST(Attention, AgreesWithItsDefinitionAtAnyHeadSize) {
  for (const std::int64_t head_size : {1, 2, 8, 10, 24, 40, 56, 64, 72, 120, 128}) {
    for (const float probability : {0.0F, 0.2F}) {
      expect_agreement({.length = 70,
                        .heads = plain_heads(1, head_size),
                        .samples = {3},
                        .probability = probability});
    }
  }
}

TEST(Attention, SharesKeyAndValueHeadsAmongQueries) {
  for (const std::int64_t queries_per_kv : {1, 2, 3, 4}) {
    for (const float probability : {0.0F, 0.2F}) {
      expect_agreement({.length = 140,
                        .heads = {.num_heads = 2 * queries_per_kv,
                                  .num_kv_heads = 2,
                                  .head_size = 8,
                                  .queries_per_kv = queries_per_kv,
                                  .first_query = 0},
                        .samples = {9, 2},
                        .probability = probability});
    }
  }
}

// What the ranks see when 6 query heads and 2 key and value heads are split over 3 ranks (the
// middle one has queries of both), and 4 queries of one key head over 4.
std::vector<HeadLayout> layouts_of_ranks() {
  return {{2, 1, 8, 3, 0}, {2, 2, 8, 3, 2}, {2, 1, 8, 3, 4},
          {1, 1, 8, 4, 0}, {1, 1, 8, 4, 1}, {1, 1, 8, 4, 3}};
}

TEST(Attention, AgreesWithItsDefinitionOnEveryRankOfASplit) {
  for (const HeadLayout& heads : layouts_of_ranks()) {
    for (const float probability : {0.0F, 0.2F}) {
      expect_agreement(
          {.length = 67, .heads = heads, .samples = {1, 0}, .probability = probability});
    }
  }
}

TEST(Attention, WritesZeroGradientsForAKeyHeadWithoutQueries) {
  const AttentionCase c{.length = 5, .heads = {1, 2, 8, 1, 0}};
  expect_agreement(c);
}

TEST(Attention, IsBitEqualForAnyNumberOfThreads) {
  for (const float probability : {0.0F, 0.2F}) {
    const AttentionCase c{.length = 200,
                          .heads = {.num_heads = 6,
                                    .num_kv_heads = 3,
                                    .head_size = 24,
                                    .queries_per_kv = 2,
                                    .first_query = 0},
                          .samples = {5, 6},
                          .probability = probability};
    const AttentionInputs inputs = random_inputs(c);
    const AttentionOutputs one = run_attention(c, inputs, 1);
    EXPECT_TRUE(run_attention(c, inputs, 2) == one);
    EXPECT_TRUE(run_attention(c, inputs, 3) == one);
  }
}

TEST(Attention, ALaterTokenChangesNothingEarlier) {
  constexpr std::int64_t kChanged = 100;
  const AttentionCase c{
      .length = 150, .heads = plain_heads(2, 16), .samples = {0}, .probability = 0.1F};
  AttentionInputs inputs = random_inputs(c);
  const AttentionOutputs before = run_attention(c, inputs);
  for (std::int64_t i = 0; i < c.qkv_size(); ++i) {
    inputs.qkv[static_cast<std::size_t>(kChanged * c.qkv_size() + i)] += 3.0F;
  }
  const AttentionOutputs after = run_attention(c, inputs);
  const auto earlier = [&](const std::vector<float>& context) {
    return std::vector<float>(context.begin(), context.begin() + kChanged * c.context_size());
  };
  EXPECT_TRUE(earlier(before.context) == earlier(after.context));
  EXPECT_FALSE(before.context == after.context);
  for (std::int64_t head = 0; head < 2; ++head) {
    const auto statistics = [&](const AttentionOutputs& outputs) {
      const auto first = outputs.log_sum_exp.begin() + head * c.length;
      return std::vector<float>(first, first + kChanged);
    };
    EXPECT_TRUE(statistics(before) == statistics(after));
  }
}

TEST(Attention, StaysFiniteAndRightAtLargeScores) {
  const AttentionCase c{.length = 130, .heads = plain_heads(2, 64)};
  const AttentionInputs inputs = random_inputs(c, 110.0F);  // scores of the order of 12000
  const AttentionOutputs outputs = run_attention(c, inputs);
  const AttentionResult expected = reference_attention(c, widened(inputs.qkv));
  EXPECT_GT(*std::max_element(expected.log_sum_exp.begin(), expected.log_sum_exp.end()), 1e4);
  // A score of 1e4 is only known to 1e-3, and its probability no better.
  EXPECT_LE(scaled_error(outputs.context, expected.context), 5e-3);
  EXPECT_LE(scaled_error(outputs.log_sum_exp, expected.log_sum_exp), 1e-6);
  for (const float gradient : outputs.dqkv) EXPECT_TRUE(std::isfinite(gradient));
}

TEST(Attention, LetsNanThrough) {
  constexpr std::int64_t kToken = 70;
  const AttentionCase c{.length = 140, .heads = plain_heads(1, 8)};
  for (const std::int64_t part : {0, 1, 2}) {  // query, key, value
    AttentionInputs inputs = random_inputs(c);
    inputs.qkv[static_cast<std::size_t>(kToken * c.qkv_size() + part * 8 + 3)] =
        std::numeric_limits<float>::quiet_NaN();
    const AttentionOutputs outputs = run_attention(c, inputs);
    const auto context_is_nan = [&](std::int64_t token, std::int64_t column) {
      return std::isnan(outputs.context[static_cast<std::size_t>(token * 8 + column)]);
    };
    EXPECT_TRUE(context_is_nan(kToken, 3)) << part;
    EXPECT_EQ(context_is_nan(139, 3), part != 0) << part;
    EXPECT_FALSE(context_is_nan(20, 3)) << part;
    EXPECT_TRUE(std::any_of(outputs.dqkv.begin(), outputs.dqkv.end(),
                            [](float gradient) { return std::isnan(gradient); }));
  }
}

}  // namespace
}  // namespace redspine
