// Rotary positions against their definition in double.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

struct RopeCase {
  std::int64_t batch;
  std::int64_t length;
  std::int64_t num_heads;
  std::int64_t num_rotated_heads;
  std::int64_t head_size;

  std::int64_t row_size() const { return num_heads * head_size; }
  std::int64_t count() const { return batch * length * row_size(); }
};

constexpr RopeCase kCases[] = {{1, 1, 1, 1, 2},    {2, 5, 3, 2, 8},   {3, 17, 4, 4, 24},
                               {1, 70, 6, 5, 64},  {2, 33, 5, 3, 10}, {2, 9, 3, 0, 16},
                               {1, 4, 12, 8, 128}, {2, 3, 3, 2, 72}};

double angle(std::int64_t t, std::int64_t i, std::int64_t half) {
  return static_cast<double>(t) *
         std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
}

// cos or sin of all angles, for more positions than the case has.
template <class Function>
std::vector<float> table(const RopeCase& c, Function function) {
  const std::int64_t half = c.head_size / 2;
  std::vector<float> values;
  for (std::int64_t t = 0; t < c.length + 3; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      values.push_back(static_cast<float>(function(angle(t, i, half))));
    }
  }
  return values;
}

std::vector<float> random_rows(const RopeCase& c, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(c.count()));
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<float> rotate(const RopeCase& c, const std::vector<float>& rows,
                          RopeDirection direction, int num_threads = 2) {
  const auto device = make_cpu_device(num_threads);
  Tensor x(*device, DType::f32, {c.batch, c.length, c.row_size()});
  Tensor cos(*device, DType::f32, {c.length + 3, c.head_size / 2});
  Tensor sin(*device, DType::f32, {c.length + 3, c.head_size / 2});
  const std::vector<float> cosines = table(c, [](double a) { return std::cos(a); });
  const std::vector<float> sines = table(c, [](double a) { return std::sin(a); });
  device->upload(x, host_view(std::span(rows)));
  device->upload(cos, host_view(std::span(cosines)));
  device->upload(sin, host_view(std::span(sines)));
  ops::run(*device, Rope{.x = x,
                         .cos = cos,
                         .sin = sin,
                         .num_rotated_heads = c.num_rotated_heads,
                         .direction = direction});
  std::vector<float> result(rows.size());
  device->download(host_view(std::span(result)), x);
  return result;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

TEST(Rope, TurnsEachPairByTheAngleOfItsPositionAndLeavesOtherHeadsAlone) {
  for (const RopeCase& c : kCases) {
    const std::vector<float> before = random_rows(c, 1);
    const std::vector<float> after = rotate(c, before, RopeDirection::forward);
    const std::int64_t half = c.head_size / 2;
    for (std::int64_t row = 0; row < c.batch * c.length; ++row) {
      for (std::int64_t head = 0; head < c.num_heads; ++head) {
        for (std::int64_t i = 0; i < half; ++i) {
          const auto low = static_cast<std::size_t>(row * c.row_size() + head * c.head_size + i);
          const std::size_t high = low + static_cast<std::size_t>(half);
          if (head >= c.num_rotated_heads) {
            ASSERT_EQ(after[low], before[low]);
            ASSERT_EQ(after[high], before[high]);
            continue;
          }
          const double turn = angle(row % c.length, i, half);
          ASSERT_NEAR(after[low], before[low] * std::cos(turn) - before[high] * std::sin(turn),
                      2e-6);
          ASSERT_NEAR(after[high], before[high] * std::cos(turn) + before[low] * std::sin(turn),
                      2e-6);
        }
      }
    }
  }
}

TEST(Rope, BackwardIsTheTranspose) {
  for (const RopeCase& c : kCases) {
    const std::vector<float> x = random_rows(c, 2);
    const std::vector<float> y = random_rows(c, 3);
    const double forward = dot(rotate(c, x, RopeDirection::forward), y);
    const double backward = dot(x, rotate(c, y, RopeDirection::backward));
    EXPECT_NEAR(forward, backward, 1e-6 * std::sqrt(dot(x, x) * dot(y, y)));
  }
}

TEST(Rope, BackwardUndoesForward) {
  for (const RopeCase& c : kCases) {
    const std::vector<float> x = random_rows(c, 4);
    const std::vector<float> restored =
        rotate(c, rotate(c, x, RopeDirection::forward), RopeDirection::backward);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(restored[i], x[i], 2e-6);
  }
}

TEST(Rope, IsBitEqualForAnyNumberOfThreads) {
  const RopeCase c{3, 17, 4, 3, 24};
  const std::vector<float> x = random_rows(c, 5);
  const std::vector<float> one = rotate(c, x, RopeDirection::forward, 1);
  EXPECT_TRUE(rotate(c, x, RopeDirection::forward, 2) == one);
  EXPECT_TRUE(rotate(c, x, RopeDirection::forward, 3) == one);
}

}  // namespace
}  // namespace redspine
