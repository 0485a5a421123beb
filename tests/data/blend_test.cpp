#include "data/blend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

/// The largest |picks - share * samples| over all entries and prefixes of `num_samples`.
double largest_deviation(const std::vector<double>& weights, std::int64_t num_samples) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> counts(weights.size());
  Blend blend(weights);
  double largest = 0.0;
  for (std::int64_t n = 1; n <= num_samples; ++n) {
    const Blend::Pick pick = blend.next();
    EXPECT_EQ(pick.index, counts[static_cast<std::size_t>(pick.entry)]++);
    for (std::size_t e = 0; e < weights.size(); ++e) {
      const double share = weights[e] / total * static_cast<double>(n);
      largest = std::max(largest, std::abs(static_cast<double>(counts[e]) - share));
    }
  }
  return largest;
}

/// Tijdeman's bound, and the rounding of the weights to parts over `num_samples`.
double bound(std::size_t num_entries, std::int64_t num_samples) {
  const double rounding = static_cast<double>(num_samples) / Blend::kNumParts;
  return 1.0 - 1.0 / (2.0 * static_cast<double>(num_entries) - 2.0) + rounding;
}

TEST(Blend, GivesASingleEntryEverything) {
  Blend blend(std::vector<double>{0.3});
  for (std::int64_t i = 0; i < 5; ++i) {
    const Blend::Pick pick = blend.next();
    EXPECT_EQ(pick.entry, 0);
    EXPECT_EQ(pick.index, i);
  }
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  blend.seek(kFar);
  EXPECT_EQ(blend.next().index, kFar);
}

TEST(Blend, KeepsEveryPrefixWithinOneSampleOfTheShares) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t num_entries = 2 + random() % 9;
    std::vector<double> weights(num_entries);
    // From equal to very unequal weights.
    const double spread = std::uniform_real_distribution(0.0, 6.0)(random);
    for (double& w : weights) w = std::exp(std::uniform_real_distribution(0.0, spread)(random));
    constexpr std::int64_t kNumSamples = 2000;
    ASSERT_LE(largest_deviation(weights, kNumSamples), bound(num_entries, kNumSamples));
  }
}

TEST(Blend, KeepsAwkwardSharesWithinOneSample) {
  constexpr std::int64_t kNumSamples = 20000;
  for (const std::vector<double>& weights : {std::vector<double>{1, 1},
                                             {1, 1, 1},
                                             {0.999, 0.001},
                                             {0.5, 0.3, 0.2},
                                             {0.98, 0.01, 0.01},
                                             {1e-3, 1e-3, 1, 1, 1},
                                             {3, 1, 7},
                                             {1e9, 2e9},
                                             {0.49, 0.49, 0.02}}) {
    EXPECT_LE(largest_deviation(weights, kNumSamples), bound(weights.size(), kNumSamples));
  }
  EXPECT_LE(largest_deviation(std::vector<double>(64, 1.0), kNumSamples), 1.0);
}

TEST(Blend, GivesDecimalsAndSmallFractionsExactly) {
  Blend decimals(std::vector<double>{0.7, 0.2, 0.1});
  decimals.seek(1'000'000'000'000);
  std::vector<std::int64_t> first(3, -1);
  for (int i = 0; i < 20; ++i) {
    const Blend::Pick pick = decimals.next();
    std::int64_t& index = first[static_cast<std::size_t>(pick.entry)];
    if (index < 0) index = pick.index;
  }
  EXPECT_EQ(first, (std::vector<std::int64_t>{700'000'000'000, 200'000'000'000, 100'000'000'000}));

  Blend thirds(std::vector<double>{1, 1, 1});
  thirds.seek(3'000'000'000);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(thirds.next().index, 1'000'000'000);
}

TEST(Blend, IsAPureFunctionOfTheSampleIndex) {
  const std::vector<double> weights = {0.61803, 0.3, 0.0817};
  std::vector<Blend::Pick> picks;
  picks.reserve(5000);
  Blend forwards(weights);
  for (int i = 0; i < 5000; ++i) picks.push_back(forwards.next());
  std::mt19937 random(3);
  Blend jumping(weights);
  for (int trial = 0; trial < 500; ++trial) {
    const std::size_t sample = random() % picks.size();
    jumping.seek(static_cast<std::int64_t>(sample));
    EXPECT_EQ(jumping.position(), static_cast<std::int64_t>(sample));
    const Blend::Pick pick = jumping.next();
    ASSERT_EQ(pick.entry, picks[sample].entry);
    ASSERT_EQ(pick.index, picks[sample].index);
  }
}

TEST(Blend, SeeksAcrossPeriodsAsIfItHadWalked) {
  const std::vector<double> weights = {0.61803, 0.3, 0.08197};
  Blend walking(weights);
  Blend seeking(weights);
  constexpr std::int64_t kTarget = Blend::kNumParts + 12345;
  while (walking.position() < kTarget) walking.next();
  seeking.seek(kTarget);
  for (int i = 0; i < 1000; ++i) {
    const Blend::Pick expected = walking.next();
    const Blend::Pick pick = seeking.next();
    ASSERT_EQ(pick.entry, expected.entry);
    ASSERT_EQ(pick.index, expected.index);
  }
}

TEST(Blend, RejectsAWeightThatWouldRoundToNothing) {
  EXPECT_EQ(config_error_of([] {
              Blend(std::vector<double>{1.0, 1.0, 1e-8});
            }),
            "data.train[2].weight: is 1e-08, 5.0e-09 of the sum of all weights; legal: at least "
            "4.0e-07 of it");
}

}  // namespace
}  // namespace redspine
