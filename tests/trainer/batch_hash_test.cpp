#include "trainer/batch_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tensor/philox.h"

namespace redspine {
namespace {

template <std::size_t size>
void add(std::array<double, size>& sums, const std::array<double, size>& terms) {
  std::transform(sums.begin(), sums.end(), terms.begin(), sums.begin(), std::plus<>());
}

HashMoments sum_of_moments(const std::vector<std::uint64_t>& hashes) {
  HashMoments sums{};
  for (const std::uint64_t hash : hashes) add(sums, moments_of(hash));
  return sums;
}

TEST(BatchHash, PartsAddUpToTheSumModulo2To64) {
  std::uint64_t expected = 0;
  HashParts sums{};
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const std::uint64_t hash = i == 0 ? ~std::uint64_t{0} : random_key(i, 1);
    expected += hash;
    add(sums, parts_of(hash));
  }
  EXPECT_EQ(hash_of(sums), expected);
}

TEST(BatchHash, EqualOnesAreEqualOnAnyNumberOfRanks) {
  for (const std::size_t num_ranks : {1, 2, 3, 8, 512}) {
    for (const std::uint64_t hash : {std::uint64_t{0}, ~std::uint64_t{0}, random_key(7, 2)}) {
      EXPECT_TRUE(
          are_equal(sum_of_moments(std::vector(num_ranks, hash)), static_cast<int>(num_ranks)));
    }
  }
}

TEST(BatchHash, OneBitOfOneRankMakesThemUnequal) {
  for (const std::size_t num_ranks : {2, 3, 8, 512}) {
    for (int bit = 0; bit < 64; ++bit) {
      std::vector<std::uint64_t> hashes(num_ranks, ~std::uint64_t{0});
      hashes.back() ^= std::uint64_t{1} << bit;
      EXPECT_FALSE(are_equal(sum_of_moments(hashes), static_cast<int>(num_ranks))) << bit;
    }
  }
}

}  // namespace
}  // namespace redspine
