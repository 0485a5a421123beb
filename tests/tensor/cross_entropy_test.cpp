#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/ops.h"
#include "tests/support/expect_close.h"
#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using namespace redspine::testing;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Sum over rows with a target of log(sum(exp(logits))) - logits[target].
double total_loss(const Values& logits, const std::vector<std::int32_t>& targets) {
  const std::size_t v = logits.size() / targets.size();
  double loss = 0;
  for (std::size_t n = 0; n < targets.size(); ++n) {
    if (targets[n] < 0) continue;
    double sum = 0;
    for (std::size_t c = 0; c < v; ++c) sum += std::exp(logits[n * v + c]);
    loss += std::log(sum) - logits[n * v + static_cast<std::size_t>(targets[n])];
  }
  return loss;
}

Values loss_gradient(const Values& logits, const std::vector<std::int32_t>& targets) {
  const std::size_t v = logits.size() / targets.size();
  Values gradient(logits.size());
  for (std::size_t n = 0; n < targets.size(); ++n) {
    if (targets[n] < 0) continue;
    double sum = 0;
    for (std::size_t c = 0; c < v; ++c) sum += std::exp(logits[n * v + c]);
    for (std::size_t c = 0; c < v; ++c) {
      gradient[n * v + c] =
          std::exp(logits[n * v + c]) / sum - (c == static_cast<std::size_t>(targets[n]) ? 1 : 0);
    }
  }
  return gradient;
}

// The vocabulary cut at the given columns, as the tensor ranks hold it, and the loss over all
// shards: what the ranks would reduce is reduced here.
struct Sharded {
  Device& device;
  std::vector<std::int64_t> cuts;  // first columns, and V at the end
  std::int64_t rows;
  std::vector<Tensor> logits;
  Tensor max;
  Tensor sums;
  Tensor targets;
  double loss = 0;
};

Sharded forward(Device& device, const std::vector<float>& logits,
                const std::vector<std::int32_t>& targets, std::vector<std::int64_t> cuts) {
  const auto rows = static_cast<std::int64_t>(targets.size());
  const std::int64_t v = cuts.back();
  Sharded s{device, std::move(cuts), rows, {}, {}, {}, to_device(device, targets, {rows})};
  std::vector<float> max(targets.size(), -kInfinity);
  for (std::size_t shard = 0; shard + 1 < s.cuts.size(); ++shard) {
    std::vector<float> part;
    for (std::int64_t n = 0; n < rows; ++n) {
      part.insert(part.end(), logits.begin() + n * v + s.cuts[shard],
                  logits.begin() + n * v + s.cuts[shard + 1]);
    }
    s.logits.push_back(to_device(device, part, {rows, s.cuts[shard + 1] - s.cuts[shard]}));
    Tensor shard_max = to_device(device, random_values(rows, 9), {rows});
    ops::run(device, RowMax{.max = shard_max, .logits = s.logits.back()});
    const auto values = from_device(device, shard_max);
    for (std::size_t n = 0; n < max.size(); ++n) max[n] = std::max(max[n], values[n]);
  }
  s.max = to_device(device, max, {rows});
  std::vector<float> sums(2 * targets.size());
  for (std::size_t shard = 0; shard < s.logits.size(); ++shard) {
    Tensor shard_sums = to_device(device, random_values(2 * rows, 8), {2, rows});
    ops::run(device, CrossEntropySums{.sums = shard_sums,
                                      .logits = s.logits[shard],
                                      .max = s.max,
                                      .targets = s.targets,
                                      .first_column = s.cuts[shard]});
    const auto values = from_device(device, shard_sums);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  }
  s.sums = to_device(device, sums, {2, rows});
  Tensor loss = to_device<double>(device, {0.25}, {1});
  ops::run(device, CrossEntropyLoss{.loss = loss, .sums = s.sums, .targets = s.targets});
  s.loss = from_device<double>(device, loss)[0] - 0.25;
  return s;
}

std::vector<float> backward(Sharded& s, float scale) {
  const std::int64_t v = s.cuts.back();
  std::vector<float> gradient(static_cast<std::size_t>(s.rows * v));
  for (std::size_t shard = 0; shard < s.logits.size(); ++shard) {
    ops::run(s.device, CrossEntropyBackward{.logits = s.logits[shard],
                                            .max = s.max,
                                            .sums = s.sums,
                                            .targets = s.targets,
                                            .first_column = s.cuts[shard],
                                            .scale = scale});
    const auto part = from_device(s.device, s.logits[shard]);
    const std::int64_t width = s.cuts[shard + 1] - s.cuts[shard];
    for (std::int64_t n = 0; n < s.rows; ++n) {
      std::copy_n(part.begin() + n * width, width, gradient.begin() + n * v + s.cuts[shard]);
    }
  }
  return gradient;
}

const std::vector<std::vector<std::int64_t>> kCuts{
    {0, 257}, {0, 129, 257}, {0, 1, 1, 200, 257}, {0, 1}, {0, 4099}};

TEST(CrossEntropy, LossAgreesWithTheReferenceHoweverTheVocabularyIsCut) {
  const auto device = make_cpu_device(2);
  for (const auto& cuts : kCuts) {
    for (std::int64_t rows : {1, 70}) {
      const std::int64_t v = cuts.back();
      const auto logits = random_values(rows * v, 1, 4);
      const auto targets = random_ids(rows, 2, 0, static_cast<std::int32_t>(v - 1));
      const double expected = total_loss(widen(logits), targets);
      EXPECT_NEAR(forward(*device, logits, targets, cuts).loss, expected, 1e-6 * expected + 1e-6);
    }
  }
}

TEST(CrossEntropy, ReferenceGradientIsThatOfTheReference) {
  const Values logits = widen(random_values(33, 1, 2));
  const std::vector<std::int32_t> targets{10, -1, 0};
  expect_close(central_differences(
                   [&](const Values& at) { return Values{total_loss(at, targets)}; }, logits, {1}),
               loss_gradient(logits, targets), 1e-7);
}

TEST(CrossEntropy, GradientAgreesWithTheReferenceHoweverTheVocabularyIsCut) {
  const auto device = make_cpu_device(2);
  for (const auto& cuts : kCuts) {
    const std::int64_t v = cuts.back();
    const auto logits = random_values(70 * v, 1, 4);
    auto targets = random_ids(70, 2, 0, static_cast<std::int32_t>(v - 1));
    targets[3] = targets[69] = -1;
    Values expected = loss_gradient(widen(logits), targets);
    for (double& value : expected) value *= 0.125;
    Sharded s = forward(*device, logits, targets, cuts);
    expect_close(backward(s, 0.125F), expected, 2e-6);
  }
}

TEST(CrossEntropy, RowsWithoutATargetAddNoLossAndNoGradient) {
  const auto device = make_cpu_device(1);
  auto logits = random_values(10, 1);
  logits[3] = kNaN;  // not even then
  Sharded s = forward(*device, logits, {-1, 4}, {0, 2, 5});
  EXPECT_NEAR(s.loss, total_loss({logits.begin() + 5, logits.end()}, {4}), 1e-6);
  const auto gradient = backward(s, 1);
  EXPECT_EQ(std::vector<float>(gradient.begin(), gradient.begin() + 5), std::vector<float>(5));
}

TEST(CrossEntropy, SurvivesLogitsWhoseExponentialsOverflow) {
  const auto device = make_cpu_device(1);
  const Sharded s = forward(*device, {1000, 999, -1000}, {1}, {0, 3});
  EXPECT_NEAR(s.loss, std::log(1 + std::exp(1.0)), 1e-6);
}

TEST(CrossEntropy, MaskedColumnsHaveNoProbability) {
  const auto device = make_cpu_device(1);
  Sharded s = forward(*device, {1, 2, -kInfinity, -kInfinity}, {0}, {0, 2, 4});
  EXPECT_NEAR(s.loss, std::log(1 + std::exp(1.0)), 1e-6);
  const auto gradient = backward(s, 1);
  EXPECT_EQ(gradient[2], 0);
  EXPECT_EQ(gradient[3], 0);
}

TEST(CrossEntropy, ANaNLogitAnywhereInARowMakesTheLossNaN) {
  const auto device = make_cpu_device(2);
  for (std::size_t column : {0U, 1U, 128U, 255U, 256U}) {
    for (const auto& cuts : std::vector<std::vector<std::int64_t>>{{0, 257}, {0, 129, 257}}) {
      auto logits = random_values(1028, 1);
      logits[std::size_t{514} + column] = kNaN;
      EXPECT_TRUE(std::isnan(forward(*device, logits, {0, 1, 2, 3}, cuts).loss)) << column;
    }
  }
  EXPECT_TRUE(std::isnan(forward(*device, {kNaN, kNaN}, {0}, {0, 2}).loss));
}

TEST(RowMax, IsMinusInfinityForAnEmptyShard) {
  const auto device = make_cpu_device(1);
  Tensor max(*device, DType::f32, {3});
  ops::run(*device, RowMax{.max = max, .logits = Tensor(*device, DType::f32, {3, 0})});
  EXPECT_EQ(from_device(*device, max), std::vector<float>(3, -kInfinity));
}

TEST(RowMax, FindsTheLargestWhereverItIs) {
  const auto device = make_cpu_device(2);
  constexpr std::int64_t kCols = 70;
  std::vector<float> logits(kCols * kCols, -5);
  for (std::size_t row = 0; row < kCols; ++row) logits[row * kCols + row] = -1;
  Tensor max(*device, DType::f32, {kCols});
  ops::run(*device, RowMax{.max = max, .logits = to_device(*device, logits, {kCols, kCols})});
  EXPECT_EQ(from_device(*device, max), std::vector<float>(kCols, -1));
}

}  // namespace
}  // namespace redspine
