#include "tensor/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using testing::random_values;

const DigestKey kKey = digest_key("blocks.0.mlp.up.weight", {48, 16});

// By its definition.
Digest written_out(const std::vector<float>& values, const DigestKey& key,
                   const std::vector<std::int64_t>& indices) {
  Digest digest;
  for (std::size_t i = 0; i < values.size(); ++i) {
    digest += digest_of_element(std::bit_cast<std::uint32_t>(values[i]),
                                digest_counter(key, indices[i]), key.mask);
  }
  return digest;
}

std::vector<std::int64_t> indices(std::size_t count, std::int64_t first, std::int64_t step) {
  std::vector<std::int64_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = first + static_cast<std::int64_t>(i) * step;
  return all;
}

float with_bit_flipped(float value, int bit) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (std::uint32_t{1} << bit));
}

// The same on every processor and in every build: each of them tests itself against all others.
// Computed by another program.
TEST(Digest, IsAConstantOfThisFormat) {
  std::vector<float> values(1003);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(static_cast<float>(i * i) - 1000.0F, static_cast<int>(i % 40) - 20);
  }
  EXPECT_EQ(digest_of(values, kKey, 0).text(), "7662f56c49c26fe8448765ea72eb8440");
  EXPECT_EQ(digest_of(values, kKey, std::int64_t{1} << 40, 50257).text(),
            "f81296015dd989aaf8926fa78a477e3f");
}

TEST(Digest, IsTheSumOfItsElementsHoweverTheyAreCut) {
  for (const std::size_t count : {0, 1, 7, 8, 15, 16, 17, 33, 128, 1003}) {
    const std::vector<float> values = random_values(static_cast<std::int64_t>(count), 1);
    for (const std::int64_t first :
         {std::int64_t{0}, std::int64_t{5}, (std::int64_t{1} << 32) - 9}) {
      for (const std::int64_t step : {1, 3, 768}) {
        const Digest whole = written_out(values, kKey, indices(count, first, step));
        EXPECT_EQ(digest_of(values, kKey, first, step), whole) << count;
        const std::size_t cut = count * 2 / 3;
        const std::span<const float> all(values);
        EXPECT_EQ(digest_of(all.first(cut), kKey, first, step) +
                      digest_of(all.subspan(cut), kKey,
                                first + static_cast<std::int64_t>(cut) * step, step),
                  whole)
            << count;
      }
    }
  }
}

TEST(Digest, OfSomeColumnsIsThatOfTheirPlacesInTheWholeMatrix) {
  constexpr std::int64_t kRows = 9;
  constexpr std::int64_t kCols = 70;
  const std::vector<float> matrix = random_values(kRows * kCols, 2);
  const Digest whole = digest_of(matrix, kKey, 0);
  for (const std::int64_t cut : {1, 8, 33, 69}) {
    Digest sum;
    for (const auto& [begin, end] : {std::pair(std::int64_t{0}, cut), std::pair(cut, kCols)}) {
      std::vector<float> share;
      for (std::int64_t row = 0; row < kRows; ++row) {
        share.insert(share.end(), matrix.begin() + row * kCols + begin,
                     matrix.begin() + row * kCols + end);
      }
      sum += digest_of(share,
                       {.key = kKey, .first = begin, .columns = end - begin, .row_stride = kCols});
    }
    EXPECT_EQ(sum, whole) << cut;
  }
}

TEST(Digest, AnyBitOfAnyElementChangesIt) {
  std::vector<float> values = random_values(100, 3);
  values[7] = 0.0F;
  values[8] = -0.0F;
  const Digest before = digest_of(values, kKey, 0);
  for (float& value : values) {
    for (int bit = 0; bit < 32; ++bit) {
      value = with_bit_flipped(value, bit);
      EXPECT_NE(digest_of(values, kKey, 0), before) << bit;
      value = with_bit_flipped(value, bit);
    }
  }
}

TEST(Digest, TwoFlippedBitsDoNotCancel) {
  std::vector<float> values = random_values(24, 4);
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::size_t num_flips = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      for (int bit = 0; bit < 32; ++bit) {
        std::vector<float> flipped = values;
        flipped[i] = with_bit_flipped(flipped[i], bit);
        flipped[j] = with_bit_flipped(flipped[j], bit);
        const Digest digest = digest_of(flipped, kKey, 0);
        seen.insert({digest.low, digest.high});
        ++num_flips;
      }
    }
  }
  EXPECT_EQ(seen.size(), num_flips);
}

TEST(Digest, TheOrderOfElementsCounts) {
  std::vector<float> values = random_values(64, 5);
  const Digest before = digest_of(values, kKey, 0);
  for (std::size_t i = 1; i < values.size(); ++i) {
    std::swap(values[0], values[i]);
    EXPECT_NE(digest_of(values, kKey, 0), before) << i;
    std::swap(values[0], values[i]);
  }
  std::rotate(values.begin(), values.begin() + 1, values.end());
  EXPECT_NE(digest_of(values, kKey, 0), before);
}

TEST(Digest, NameAndShapeCountAlsoOfZeros) {
  const std::vector<float> zeros(64);
  std::set<std::string> seen;
  for (const char* name : {"a.weight", "b.weight", "a.bias"}) {
    for (const Shape& shape : {Shape{64}, Shape{8, 8}, Shape{4, 16}, Shape{16, 4}}) {
      seen.insert(digest_of(zeros, digest_key(name, shape), 0).text());
    }
  }
  for (const std::size_t count : {1, 2, 63}) {
    seen.insert(digest_of(std::span(zeros).first(count), digest_key("a.weight", {64}), 0).text());
  }
  EXPECT_EQ(seen.size(), 15);
}

// A digest of few bits would meet itself among so many.
TEST(Digest, NoTwoOfManyAreEqualInEitherHalf) {
  std::set<std::uint64_t> low;
  std::set<std::uint64_t> high;
  std::vector<float> values(40);
  constexpr std::size_t kNumDigests = 20000;
  for (std::size_t i = 0; i < kNumDigests; ++i) {
    values[i % values.size()] += 1.0F;
    const Digest digest = digest_of(values, kKey, 0);
    low.insert(digest.low);
    high.insert(digest.high);
  }
  EXPECT_EQ(low.size(), kNumDigests);
  EXPECT_EQ(high.size(), kNumDigests);
}

TEST(Digest, ReadsItsOwnTextAndNoOther) {
  const Digest digest{.low = 0x0123456789abcdef, .high = 0xfedcba9876543210};
  EXPECT_EQ(digest.text(), "fedcba98765432100123456789abcdef");
  EXPECT_EQ(Digest::parse(digest.text()), digest);
  EXPECT_EQ(Digest::parse(Digest{}.text()), Digest{});
  for (const char* text :
       {"", "edcba98765432100123456789abcdef", "fedcba98765432100123456789abcdef0",
        "Fedcba98765432100123456789abcdef", "-edcba98765432100123456789abcdef"}) {
    EXPECT_FALSE(Digest::parse(text)) << text;
  }
}

}  // namespace
}  // namespace redspine
