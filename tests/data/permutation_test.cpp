#include "data/permutation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace redspine {
namespace {

std::vector<std::int64_t> order(std::int64_t n, std::uint64_t key) {
  const Permutation permutation(n, key);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(permutation(i));
  return values;
}

TEST(Permutation, IsABijectionOfEverySize) {
  std::vector<std::int64_t> sizes = {1000, 1023, 1024, 1025, 4097, 65536, 65537, 99991};
  for (std::int64_t n = 1; n <= 130; ++n) sizes.push_back(n);
  for (const std::int64_t n : sizes) {
    for (const std::uint64_t key : {0u, 1u, 77u}) {
      std::vector<bool> is_seen(static_cast<std::size_t>(n));
      for (const std::int64_t value : order(n, key)) {
        ASSERT_TRUE(value >= 0 && value < n) << "n " << n << " key " << key;
        ASSERT_FALSE(is_seen[static_cast<std::size_t>(value)]) << "n " << n << " key " << key;
        is_seen[static_cast<std::size_t>(value)] = true;
      }
    }
  }
}

TEST(Permutation, ReachesSizesUpTo2To62) {
  for (const std::int64_t n :
       {(std::int64_t{1} << 31) + 11, (std::int64_t{1} << 61) + 1, std::int64_t{1} << 62}) {
    const Permutation permutation(n, 5);
    std::set<std::int64_t> values;
    bool is_far_reached = false;
    for (std::int64_t i = 0; i < 1000; ++i) {
      for (const std::int64_t position : {i, n - 1 - i}) {
        const std::int64_t value = permutation(position);
        ASSERT_TRUE(value >= 0 && value < n);
        is_far_reached = is_far_reached || value > n / 2;
        values.insert(value);
      }
    }
    EXPECT_EQ(values.size(), 2000u);
    EXPECT_TRUE(is_far_reached);
  }
}

TEST(Permutation, DependsOnItsKey) { EXPECT_NE(order(100, 1), order(100, 2)); }

TEST(Permutation, PutsEachValueEverywhereEquallyOften) {
  // Chi-squared over where a value lands: 99.99% of fair orders stay below the limit.
  struct Case {
    std::int64_t n;
    double limit;
  };
  for (const Case c : {Case{2, 15.2}, Case{3, 18.5}, Case{5, 23.6}, Case{8, 29.9}, Case{17, 46.0},
                       Case{33, 72.0}}) {
    constexpr int kNumKeys = 8000;
    for (const std::int64_t position : {std::int64_t{0}, c.n / 2, c.n - 1}) {
      std::vector<double> counts(static_cast<std::size_t>(c.n));
      for (std::uint64_t key = 0; key < kNumKeys; ++key) {
        counts[static_cast<std::size_t>(Permutation(c.n, key)(position))] += 1.0;
      }
      const double expected = kNumKeys / static_cast<double>(c.n);
      double chi_squared = 0.0;
      for (const double count : counts) {
        chi_squared += (count - expected) * (count - expected) / expected;
      }
      EXPECT_LT(chi_squared, c.limit) << "n " << c.n << " position " << position;
    }
  }
}

TEST(Permutation, LeavesNeighboursUnrelated) {
  constexpr std::int64_t kSize = 10000;
  const std::vector<std::int64_t> values = order(kSize, 3);
  int num_close = 0;
  int num_fixed = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (std::abs(values[i] - values[i - 1]) <= 10) ++num_close;
    if (values[i] == static_cast<std::int64_t>(i)) ++num_fixed;
  }
  EXPECT_LT(num_close, 45);  // 20 are expected of a random order
  EXPECT_LT(num_fixed, 10);  // 1 is expected
}

}  // namespace
}  // namespace redspine
