// Element-wise dropout: which elements it drops is a pure function of (key, sample, element).
#include "tensor/cpu/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "tensor/ops.h"
#include "tensor/philox.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

constexpr std::uint64_t kKey = 0xFEDCBA9876543210;

struct DropoutCase {
  std::int64_t length;
  std::int64_t width;
  std::vector<std::int64_t> samples;
  float probability;

  std::int64_t batch() const { return static_cast<std::int64_t>(samples.size()); }
  std::int64_t sample_size() const { return length * width; }
  std::int64_t count() const { return batch() * sample_size(); }
};

enum class Target { other, in_place };

std::vector<float> drop(const DropoutCase& c, const std::vector<float>& values,
                        Target target = Target::other, int num_threads = 2,
                        std::int64_t first_position = 0) {
  const auto device = make_cpu_device(num_threads);
  Tensor x(*device, DType::f32, {c.batch(), c.length, c.width});
  Tensor other(*device, DType::f32, {c.batch(), c.length, c.width});
  Tensor samples(*device, DType::i64, {c.batch()});
  const TensorView out = target == Target::in_place ? x.view() : other.view();
  device->upload(x, host_view(std::span(values)));
  device->upload(samples, host_view(std::span(c.samples)));
  ops::run(*device, Dropout{.out = out,
                            .x = x,
                            .dropout = {kKey, c.probability, samples},
                            .first_position = first_position});
  std::vector<float> result(values.size());
  device->download(host_view(std::span(result)), out);
  return result;
}

std::vector<float> counting_values(const DropoutCase& c) {
  std::vector<float> values(static_cast<std::size_t>(c.count()));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST(Dropout, DropsWhatTheBitsOfTheCounterSay) {
  const std::int64_t far = (std::int64_t{7} << 32) + 5;
  for (const DropoutCase& c : {DropoutCase{3, 5, {4}, 0.5F}, DropoutCase{7, 13, {2, 0, far}, 0.1F},
                               DropoutCase{40, 64, {far, 1}, 0.9F}, DropoutCase{33, 101, {9}, 0.3F},
                               DropoutCase{1, 1, {1}, 0.999F}}) {
    const std::vector<float> x = counting_values(c);
    const std::vector<float> out = drop(c, x);
    for (std::int64_t i = 0; i < c.count(); ++i) {
      const auto sample =
          static_cast<std::uint64_t>(c.samples[static_cast<std::size_t>(i / c.sample_size())]);
      const auto element = static_cast<std::uint64_t>(i % c.sample_size());
      const PhiloxCounter bits = philox4x32(
          kKey,
          {static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(element / 4 >> 32),
           static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)});
      const double probability = c.probability;
      const bool dropped = bits[element % 4] < probability * 4294967296.0;
      const auto at = static_cast<std::size_t>(i);
      ASSERT_NEAR(out[at], dropped ? 0.0 : x[at] / (1.0 - probability),
                  1e-6 * x[at] / (1.0 - probability))
          << i;
    }
  }
}

TEST(Dropout, CountsElementsIn64Bits) {
  const std::int64_t far = (std::int64_t{1} << 34) * 3 + 8;
  EXPECT_EQ(element_counter((std::int64_t{5} << 32) + 6, far), (PhiloxCounter{2, 3, 6, 5}));
}

TEST(Dropout, DropsTheStatedShare) {
  for (const float probability : {0.1F, 0.5F, 0.8F}) {
    const DropoutCase c{100, 100, {1, 2, 3, 4}, probability};
    const std::vector<float> out = drop(c, counting_values(c));
    const auto num_dropped = static_cast<double>(std::count(out.begin(), out.end(), 0.0F));
    const double p = probability;
    const auto count = static_cast<double>(c.count());
    EXPECT_NEAR(num_dropped, p * count, 5.0 * std::sqrt(p * (1.0 - p) * count));
  }
}

TEST(Dropout, BelongsToTheSampleAndNotToItsPlaceInTheBatch) {
  const DropoutCase c{10, 30, {6, 42, 6}, 0.5F};
  const std::vector<float> ones(static_cast<std::size_t>(c.count()), 1.0F);
  const std::vector<float> out = drop(c, ones);
  const auto row = [&](std::int64_t b) {
    const auto first = out.begin() + b * c.sample_size();
    return std::vector<float>(first, first + c.sample_size());
  };
  EXPECT_TRUE(row(0) == row(2));
  EXPECT_FALSE(row(0) == row(1));
}

// Of any position on, whether or not counters and blocks end there.
TEST(Dropout, OfSomePositionsIsThatOfTheWholeSample) {
  for (const std::int64_t width : {1, 3, 8, 77}) {
    const DropoutCase c{50, width, {6, 42}, 0.5F};
    const std::vector<float> x = counting_values(c);
    const std::vector<float> whole = drop(c, x);
    for (const std::int64_t first : {0, 1, 2, 17, 49}) {
      DropoutCase some = c;
      some.length = c.length - first;
      std::vector<float> values;
      std::vector<float> expected;
      for (std::int64_t b = 0; b < c.batch(); ++b) {
        const std::int64_t begin = b * c.sample_size() + first * width;
        const std::int64_t end = (b + 1) * c.sample_size();
        values.insert(values.end(), x.begin() + begin, x.begin() + end);
        expected.insert(expected.end(), whole.begin() + begin, whole.begin() + end);
      }
      EXPECT_TRUE(drop(some, values, Target::other, 2, first) == expected) << width << " " << first;
    }
  }
}

TEST(Dropout, WorksInPlaceAndForAnyNumberOfThreads) {
  const DropoutCase c{50, 77, {6, 42}, 0.5F};
  const std::vector<float> x = counting_values(c);
  const std::vector<float> one = drop(c, x, Target::other, 1);
  EXPECT_TRUE(drop(c, x, Target::in_place, 1) == one);
  EXPECT_TRUE(drop(c, x, Target::in_place, 2) == one);
  EXPECT_TRUE(drop(c, x, Target::other, 3) == one);
}

TEST(Dropout, CopiesWhereTheProbabilityIsZero) {
  const DropoutCase c{5, 7, {6, 42}, 0.0F};
  const std::vector<float> x = counting_values(c);
  EXPECT_TRUE(drop(c, x) == x);
  EXPECT_TRUE(drop(c, x, Target::in_place) == x);
}

TEST(Dropout, LetsNanThroughDroppedOrNot) {
  const DropoutCase c{4, 8, {1}, 0.5F};
  const std::vector<float> x(static_cast<std::size_t>(c.count()),
                             std::numeric_limits<float>::quiet_NaN());
  for (const float value : drop(c, x)) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace redspine
