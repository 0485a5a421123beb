// Sums in a given order (exact mode), against loops that say what it is.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/error.h"
#include "tensor/exact_sum.h"
#include "tensor/ops.h"
#include "tensor/portable_math.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

using Floats = std::vector<float>;

class GivenOrder : public ::testing::Test {
 protected:
  Tensor upload(const Floats& values, Shape shape) { return to_device(*device, values, shape); }
  Floats download(const Tensor& tensor) { return from_device(*device, tensor); }

  std::unique_ptr<Device> device = make_cpu_device(2);
};

// The parts of a dim in an order: four leaves, of which two are of two pieces; what is left on the
// stack is two sums.
InnerOrder order_of(std::int64_t count) {
  const auto at = [count](double share) {
    return static_cast<std::int64_t>(share * static_cast<double>(count));
  };
  return {.parts = {{at(0.0), at(0.1), false, 0},
                    {at(0.6), at(0.7), true, 0},
                    {at(0.1), at(0.4), true, 1},
                    {at(0.4), at(0.6), false, 0},
                    {at(0.7), at(0.9), true, 0}},
          .num_sums = 2,
          .depth = 2};
}

// A block of at most 512, as even as they can be, counted from the part's beginning.
std::vector<std::pair<std::int64_t, std::int64_t>> blocks_of(std::int64_t begin, std::int64_t end) {
  const std::int64_t count = end - begin;
  const std::int64_t num_blocks = (count + 511) / 512;
  const std::int64_t length = (count + num_blocks - 1) / num_blocks;
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks;
  for (std::int64_t k = begin; k < end; k += length)
    blocks.push_back({k, std::min(k + length, end)});
  return blocks;
}

// [sum]: one element of a product.
Floats products_in_order(const InnerOrder& order, const float* a, const float* b) {
  Floats stack;
  float leaf = 0.0F;
  bool is_first = true;
  for (const InnerPart& part : order.parts) {
    for (const auto& [begin, end] : blocks_of(part.begin, part.end)) {
      float block = 0.0F;
      for (std::int64_t k = begin; k < end; ++k) block = std::fma(a[k], b[k], block);
      leaf = is_first ? block : block + leaf;
      is_first = false;
    }
    if (!part.ends_leaf) continue;
    stack.push_back(leaf);
    is_first = true;
    for (int merge = 0; merge < part.num_merges; ++merge) {
      const float right = stack.back();
      stack.pop_back();
      stack.back() += right;
    }
  }
  return stack;
}

TEST_F(GivenOrder, IsThatOfAProduct) {
  for (const auto& [rows, cols, inner] :
       {std::array<std::int64_t, 3>{3, 5, 40}, std::array<std::int64_t, 3>{130, 70, 300},
        std::array<std::int64_t, 3>{9, 900, 4000}}) {
    const Floats a = random_values(rows * inner, 1);
    const Floats b = random_values(cols * inner, 2);
    const InnerOrder order = order_of(inner);
    Tensor out(*device, DType::f32, {2 * rows, cols});
    ops::run(*device, Matmul{.out = out,
                             .a = upload(a, {rows, inner}),
                             .b = upload(b, {cols, inner}),
                             .transpose_b = Transpose::yes,
                             .order = &order});
    const Floats sums = download(out);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const Floats expected =
            products_in_order(order, a.data() + r * inner, b.data() + c * inner);
        for (std::int64_t s = 0; s < 2; ++s) {
          ASSERT_EQ(sums[static_cast<std::size_t>((s * rows + r) * cols + c)],
                    expected[static_cast<std::size_t>(s)])
              << rows << "x" << cols << "x" << inner << " at " << r << ", " << c;
        }
      }
    }
  }
}

TEST_F(GivenOrder, OfSamplesMakesAGradientOfManyThatOfOneAfterAnother) {
  constexpr std::int64_t kSamples = 3;
  constexpr std::int64_t kRows = 37;
  constexpr std::int64_t kOut = 20;
  constexpr std::int64_t kIn = 50;
  const Tensor dy = upload(random_values(kSamples * kRows * kOut, 3), {kSamples * kRows, kOut});
  const Tensor x = upload(random_values(kSamples * kRows * kIn, 4), {kSamples * kRows, kIn});
  const auto gradients = [&](std::int64_t samples_at_once) {
    Tensor dweight(*device, DType::f32, {kOut, kIn});
    Tensor dbias(*device, DType::f32, {kOut});
    for (std::int64_t s = 0; s < kSamples; s += samples_at_once) {
      ops::run(*device, WeightGradient{.dweight = dweight,
                                       .dbias = dbias,
                                       .dy = dy.view().slice(s * kRows, samples_at_once * kRows),
                                       .x = x.view().slice(s * kRows, samples_at_once * kRows),
                                       .update = s == 0 ? Update::write : Update::accumulate,
                                       .sample_rows = kRows});
    }
    Floats both = download(dweight);
    const Floats of_bias = download(dbias);
    both.insert(both.end(), of_bias.begin(), of_bias.end());
    return both;
  };
  EXPECT_EQ(gradients(3), gradients(1));
}

TEST_F(GivenOrder, OfSamplesIsThatOfNorms) {
  constexpr std::int64_t kSamples = 3;
  constexpr std::int64_t kLength = 37;
  constexpr std::int64_t kCols = 50;
  const Shape shape{kSamples, kLength, kCols};
  const Tensor x = upload(random_values(shape.count(), 5), shape);
  const Tensor dout = upload(random_values(shape.count(), 6), shape);
  const Tensor weight = upload(random_values(kCols, 7), {kCols});
  Tensor out(*device, DType::f32, shape);
  Tensor mean(*device, DType::f32, {kSamples * kLength});
  Tensor rstd(*device, DType::f32, {kSamples * kLength});
  ops::run(*device, LayerNorm{.out = out,
                              .mean = mean,
                              .rstd = rstd,
                              .x = x,
                              .weight = weight,
                              .bias = {},
                              .epsilon = 1e-5F});
  const auto gradients = [&](std::int64_t samples_at_once) {
    Tensor dx(*device, DType::f32, shape);
    Tensor dweight(*device, DType::f32, {kCols});
    Tensor dbias(*device, DType::f32, {kCols});
    for (std::int64_t s = 0; s < kSamples; s += samples_at_once) {
      const auto rows = [&](auto view) {
        return view.slice(s * kLength, samples_at_once * kLength);
      };
      ops::run(*device, LayerNormBackward{.dx = dx.view().slice(s, samples_at_once),
                                          .dweight = dweight,
                                          .dbias = dbias,
                                          .dout = dout.view().slice(s, samples_at_once),
                                          .x = x.view().slice(s, samples_at_once),
                                          .mean = rows(std::as_const(mean).view()),
                                          .rstd = rows(std::as_const(rstd).view()),
                                          .weight = weight});
    }
    Floats both = download(dweight);
    const Floats of_bias = download(dbias);
    both.insert(both.end(), of_bias.begin(), of_bias.end());
    return both;
  };
  EXPECT_EQ(gradients(3), gradients(1));
}

TEST_F(GivenOrder, IsThatOfTheSumsOfCrossEntropy) {
  constexpr std::int64_t kRows = 7;
  constexpr std::int64_t kCols = 1000;
  InnerOrder order = order_of(kCols);
  for (InnerPart& part : order.parts) part.ends_leaf = true;
  for (std::size_t p : {0U, 3U}) order.parts[p + 1].num_merges += 1;
  const Floats logits = random_values(kRows * kCols, 8);
  const Floats max(kRows, 3.0F);
  const std::vector<std::int32_t> targets = random_ids(kRows, 9, 0, kCols - 1);
  const Tensor on_device = upload(logits, {kRows, kCols});
  const Tensor max_on_device = upload(max, {kRows});
  const Tensor targets_on_device = to_device(*device, targets, {kRows});
  // A leaf alone, as a rank that has nothing else computes it.
  const auto leaf = [&](std::int64_t row, const InnerPart& part) {
    Tensor sums(*device, DType::f32, {2, 1});
    ops::run(*device,
             CrossEntropySums{.sums = sums,
                              .logits = on_device.view()
                                            .reshape({kRows * kCols, 1})
                                            .slice(row * kCols + part.begin, part.end - part.begin)
                                            .reshape({1, part.end - part.begin}),
                              .max = max_on_device.view().slice(row, 1),
                              .targets = targets_on_device.view().slice(row, 1),
                              .first_column = part.begin});
    return download(sums)[0];
  };
  Tensor sums(*device, DType::f32, {4, kRows});
  ops::run(*device, CrossEntropySums{.sums = sums,
                                     .logits = on_device,
                                     .max = max_on_device,
                                     .targets = targets_on_device,
                                     .first_column = 0,
                                     .order = &order});
  const Floats all = download(sums);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto& p = order.parts;
    const auto i = static_cast<std::size_t>(row);
    const float first = (leaf(row, p[0]) + leaf(row, p[1])) + leaf(row, p[2]);
    EXPECT_EQ(all[i], first);
    EXPECT_EQ(all[2 * kRows + i], leaf(row, p[3]) + leaf(row, p[4]));
    EXPECT_EQ(all[kRows + i], logits[i * kCols + static_cast<std::size_t>(targets[i])] - 3.0F);
    EXPECT_EQ(all[3 * kRows + i], 0.0F) << "the target is one sum's";
  }
}

TEST_F(GivenOrder, OfSquaresIsNone) {
  constexpr std::int64_t kRows = 40;
  constexpr std::int64_t kCols = 1000;
  const Floats values = random_values(kRows * kCols, 10);
  const Tensor whole = upload(values, {kRows, kCols});
  const auto sum_of = [&](const std::vector<SquaresPart>& parts) {
    Tensor sum(*device, DType::i64, {ExactSum::kNumValues});
    ops::run(*device, ExactSumOfSquares{.sum = sum, .parts = parts});
    std::array<std::int64_t, ExactSum::kNumValues> numbers{};
    device->download(host_view(std::span<std::int64_t>(numbers)), sum);
    return ExactSum(numbers);
  };
  const ExactSum expected = sum_of({{whole, {300, 700, kCols}}});
  double reference = 0.0;
  for (const float value : values)
    reference += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(expected.total() / reference, 1.0, 1e-12);
  // Rows and columns as ranks may share them.
  ExactSum parts = sum_of({{whole.view().slice(25, 15), {300, 700, kCols}}});
  parts += sum_of({{whole.view().slice(0, 25), {300, 700, kCols}}});
  parts.normalise();
  EXPECT_EQ(parts.values(), expected.values());
  Floats left;
  Floats right;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const auto row = values.begin() + r * kCols;
    left.insert(left.end(), row, row + 300);
    right.insert(right.end(), row + 300, row + kCols);
  }
  const Tensor left_on_device = upload(left, {kRows, 300});
  const Tensor right_on_device = upload(right, {kRows, 700});
  const ExactSum columns = sum_of({{right_on_device, {400, 700}}, {left_on_device, {300}}});
  EXPECT_EQ(columns.values(), expected.values());
}

TEST_F(GivenOrder, OfLossesIsNone) {
  constexpr std::int64_t kRows = 30;
  Floats sums = random_values(2 * kRows, 11);
  for (float& value : sums) value = 1.0F + value * value;
  std::vector<std::int32_t> targets(kRows, 1);
  targets[4] = -1;
  const auto loss_of = [&](const std::vector<std::size_t>& rows) {
    Tensor loss(*device, DType::i64, {ExactSum::kNumValues});
    for (const std::size_t row : rows) {
      const Floats one = {sums[row], sums[kRows + row]};
      const std::vector<std::int32_t> target = {targets[row]};
      ops::run(*device, CrossEntropyLoss{.loss = loss,
                                         .sums = upload(one, {2, 1}),
                                         .targets = to_device(*device, target, {1})});
    }
    std::array<std::int64_t, ExactSum::kNumValues> numbers{};
    device->download(host_view(std::span<std::int64_t>(numbers)), loss);
    return ExactSum(numbers);
  };
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < kRows; ++row) rows.push_back(row);
  const ExactSum expected = loss_of(rows);
  std::reverse(rows.begin(), rows.end());
  EXPECT_EQ(loss_of(rows).values(), expected.values());
  double reference = 0.0;
  for (std::size_t row = 0; row < kRows; ++row) {
    if (targets[row] < 0) continue;
    reference += std::log(static_cast<double>(sums[row])) - static_cast<double>(sums[kRows + row]);
  }
  EXPECT_NEAR(expected.total(), reference, 1e-12 * std::abs(reference));
}

TEST_F(GivenOrder, ComesWithAdditionsOfItsOwn) {
  Tensor x = upload({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  ops::run(*device, AddBias{.x = x, .bias = upload({10.0F, 20.0F}, {2})});
  EXPECT_EQ(download(x), (Floats{11.0F, 22.0F, 13.0F, 24.0F}));
  ops::run(*device, Accumulate{.sum = x, .x = upload({1.0F, 1.0F, 1.0F, 1.0F}, {4})});
  EXPECT_EQ(download(x), (Floats{12.0F, 23.0F, 14.0F, 25.0F}));
  ops::run(*device, CopyColumns{.out = x, .x = upload({5.0F, 6.0F}, {2, 1}), .first = 1});
  EXPECT_EQ(download(x), (Floats{12.0F, 5.0F, 14.0F, 6.0F}));
}

TEST_F(GivenOrder, IsRejectedWhereItIsNone) {
  Tensor out(*device, DType::f32, {2, 2});
  const Tensor a = upload(Floats(20), {2, 10});
  const Tensor b = upload(Floats(20), {10, 2});
  const auto product = [&](const InnerOrder& order) {
    ops::run(*device, Matmul{.out = out, .a = a, .b = b, .order = &order});
  };
  EXPECT_NO_THROW(product({.parts = {{0, 10, true, 0}}, .num_sums = 1, .depth = 1}));
  EXPECT_THROW(product({.parts = {{0, 11, true, 0}}, .num_sums = 1, .depth = 1}), Error);
  EXPECT_THROW(product({.parts = {{5, 5, true, 0}}, .num_sums = 1, .depth = 1}), Error);
  EXPECT_THROW(product({.parts = {{0, 10, false, 0}}, .num_sums = 1, .depth = 1}), Error);
  EXPECT_THROW(product({.parts = {{0, 10, true, 1}}, .num_sums = 1, .depth = 1}), Error);
  EXPECT_THROW(product({.parts = {{0, 5, true, 0}, {5, 10, true, 0}}, .num_sums = 2, .depth = 2}),
               Error)
      << "out has room for one sum";
}

}  // namespace
}  // namespace redspine::testing
