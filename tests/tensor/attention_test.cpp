// The attention kernels against their definition in double, and the promises that hold bit for
// bit: causality, any number of threads, any place in the batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tensor/ops.h"
#include "tensor/tensor.h"
#include "tests/tensor/attention_reference.h"

namespace redspine {
namespace {

std::vector<float> normal_values(std::int64_t count, std::uint32_t seed, float deviation = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

struct Outputs {
  std::vector<float> context;
  std::vector<float> log_sum_exp;
  std::vector<float> dqkv;

  bool operator==(const Outputs&) const = default;
};

struct Inputs {
  std::vector<float> qkv;
  std::vector<float> dcontext;
};

Inputs random_inputs(const AttentionCase& c, float deviation = 1.0F) {
  return {normal_values(c.batch() * c.length * c.qkv_size(), 1, deviation),
          normal_values(c.batch() * c.length * c.context_size(), 2)};
}

// Forward and backward on the device; outputs start as NaN, since they are written, not added to.
Outputs run(const AttentionCase& c, const Inputs& inputs, int num_threads = 2) {
  const auto device = make_cpu_device(num_threads);
  const std::int64_t batch = c.batch();
  Tensor qkv(*device, DType::f32, {batch, c.length, c.qkv_size()});
  Tensor context(*device, DType::f32, {batch, c.length, c.context_size()});
  Tensor log_sum_exp(*device, DType::f32, {batch, c.heads.num_heads, c.length});
  Tensor dcontext(*device, DType::f32, {batch, c.length, c.context_size()});
  Tensor dqkv(*device, DType::f32, {batch, c.length, c.qkv_size()});
  Tensor samples(*device, DType::i64, {batch});
  const auto fill = [&](Tensor& tensor, float value) {
    const std::vector<float> values(static_cast<std::size_t>(tensor.count()), value);
    device->upload(tensor, host_view(std::span(values)));
  };
  const auto values_of = [&](const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.count()));
    device->download(host_view(std::span(values)), tensor);
    return values;
  };
  device->upload(samples, host_view(std::span(c.samples)));
  device->upload(qkv, host_view(std::span(inputs.qkv)));
  device->upload(dcontext, host_view(std::span(inputs.dcontext)));
  for (const Tensor* output : {&context, &log_sum_exp, &dqkv}) {
    fill(*output, std::numeric_limits<float>::quiet_NaN());
  }

  const DropoutKey dropout{c.key, c.probability, samples};
  ops::run(*device, Attention{.context = context,
                              .log_sum_exp_BhT = log_sum_exp,
                              .qkv = qkv,
                              .heads = c.heads,
                              .dropout = dropout});
  ops::run(*device, AttentionBackward{.dqkv = dqkv,
                                      .dcontext = dcontext,
                                      .qkv = qkv,
                                      .context = context,
                                      .log_sum_exp_BhT = log_sum_exp,
                                      .heads = c.heads,
                                      .dropout = dropout});
  return {values_of(context), values_of(log_sum_exp), values_of(dqkv)};
}

// Largest difference, relative to the largest value there is.
double scaled_error(const std::vector<float>& values, const std::vector<double>& expected) {
  EXPECT_EQ(values.size(), expected.size());
  double error = 0.0;
  double largest = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(values[i] - expected[i]);
    if (std::isnan(difference)) return difference;
    error = std::max(error, difference);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return error / largest;
}

void expect_agreement(const AttentionCase& c) {
  SCOPED_TRACE("B " + std::to_string(c.batch()) + ", T " + std::to_string(c.length) + ", h " +
               std::to_string(c.heads.num_heads) + ", g " + std::to_string(c.heads.num_kv_heads) +
               ", K " + std::to_string(c.heads.head_size) + ", queries per kv " +
               std::to_string(c.heads.queries_per_kv) + ", first " +
               std::to_string(c.heads.first_query) + ", p " + std::to_string(c.probability));
  const Inputs inputs = random_inputs(c);
  const Outputs outputs = run(c, inputs);
  const AttentionResult expected = reference_attention(c, widened(inputs.qkv));
  EXPECT_LE(scaled_error(outputs.context, expected.context), 5e-6);
  EXPECT_LE(scaled_error(outputs.log_sum_exp, expected.log_sum_exp), 2e-6);
  EXPECT_LE(scaled_error(outputs.dqkv, reference_attention_gradient(c, widened(inputs.qkv),
                                                                    widened(inputs.dcontext))),
            1e-5);
}

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
    const Inputs inputs = random_inputs(c);
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
    const Inputs inputs = random_inputs(c);
    const Outputs one = run(c, inputs, 1);
    EXPECT_TRUE(run(c, inputs, 2) == one);
    EXPECT_TRUE(run(c, inputs, 3) == one);
  }
}

TEST(Attention, ALaterTokenChangesNothingEarlier) {
  constexpr std::int64_t kChanged = 100;
  const AttentionCase c{
      .length = 150, .heads = plain_heads(2, 16), .samples = {0}, .probability = 0.1F};
  Inputs inputs = random_inputs(c);
  const Outputs before = run(c, inputs);
  for (std::int64_t i = 0; i < c.qkv_size(); ++i) {
    inputs.qkv[static_cast<std::size_t>(kChanged * c.qkv_size() + i)] += 3.0F;
  }
  const Outputs after = run(c, inputs);
  const auto earlier = [&](const std::vector<float>& context) {
    return std::vector<float>(context.begin(), context.begin() + kChanged * c.context_size());
  };
  EXPECT_TRUE(earlier(before.context) == earlier(after.context));
  EXPECT_FALSE(before.context == after.context);
  for (std::int64_t head = 0; head < 2; ++head) {
    const auto statistics = [&](const Outputs& outputs) {
      const auto first = outputs.log_sum_exp.begin() + head * c.length;
      return std::vector<float>(first, first + kChanged);
    };
    EXPECT_TRUE(statistics(before) == statistics(after));
  }
}

TEST(Attention, StaysFiniteAndRightAtLargeScores) {
  const AttentionCase c{.length = 130, .heads = plain_heads(2, 64)};
  const Inputs inputs = random_inputs(c, 110.0F);  // scores of the order of 12000
  const Outputs outputs = run(c, inputs);
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
    Inputs inputs = random_inputs(c);
    inputs.qkv[static_cast<std::size_t>(kToken * c.qkv_size() + part * 8 + 3)] =
        std::numeric_limits<float>::quiet_NaN();
    const Outputs outputs = run(c, inputs);
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

// With zero queries and values that are the unit vectors, the context is dropped(P) itself.
Outputs observe_mask(const AttentionCase& c) {
  Inputs inputs{std::vector<float>(static_cast<std::size_t>(c.batch() * c.length * c.qkv_size())),
                normal_values(c.batch() * c.length * c.context_size(), 3)};
  for (std::int64_t row = 0; row < c.batch() * c.length; ++row) {
    const std::int64_t value = 2 * c.heads.head_size + row % c.length;
    inputs.qkv[static_cast<std::size_t>(row * c.qkv_size() + value)] = 1.0F;
  }
  return run(c, inputs);
}

TEST(AttentionDropout, DropsTheStatedShareAndScalesTheRest) {
  const AttentionCase c{
      .length = 160, .heads = plain_heads(1, 160), .samples = {12, 13}, .probability = 0.25F};
  const Outputs outputs = observe_mask(c);
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
  const Outputs outputs = observe_mask(c);
  const auto row = [&](std::int64_t b) {
    const auto first = outputs.context.begin() + b * c.length * c.context_size();
    return std::vector<float>(first, first + c.length * c.context_size());
  };
  EXPECT_TRUE(row(0) == row(2));
  EXPECT_FALSE(row(0) == row(1));
}

TEST(AttentionDropout, DiffersBetweenHeadsKeysAndSamplesThatAgreeInTheirLow32Bits) {
  AttentionCase c{.length = 40, .heads = plain_heads(1, 40), .samples = {3}, .probability = 0.5F};
  const Outputs outputs = observe_mask(c);
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
  const Inputs inputs = random_inputs(c);
  const Outputs all = run(c, inputs);
  for (std::int64_t head = 0; head < 3; ++head) {
    AttentionCase part = c;
    part.heads = {1, 1, 8, 1, head};
    Inputs slice{std::vector<float>(std::size_t{50} * 24), std::vector<float>(std::size_t{50} * 8)};
    for (std::int64_t t = 0; t < 50; ++t) {
      for (std::int64_t place = 0; place < 3; ++place) {
        std::copy_n(inputs.qkv.begin() + t * 72 + (place * 3 + head) * 8, 8,
                    slice.qkv.begin() + t * 24 + place * 8);
      }
    }
    const Outputs outputs = run(part, slice);
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
