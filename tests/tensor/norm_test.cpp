#include <gtest/gtest.h>

#include <cmath>

#include "tensor/ops.h"
#include "tests/support/expect_close.h"
#include "tests/support/random_tensor.h"
#include "tests/tensor/shapes.h"

namespace redspine {
namespace {

using namespace redspine::testing;

constexpr double kEpsilon = 1e-5;

enum class Norm { layer, rms };

struct RowStatistics {
  double mean;
  double rstd;
};

RowStatistics statistics(Norm norm, const double* x, std::size_t cols) {
  double mean = 0;
  if (norm == Norm::layer) {
    for (std::size_t c = 0; c < cols; ++c) mean += x[c] / static_cast<double>(cols);
  }
  double variance = 0;
  for (std::size_t c = 0; c < cols; ++c) {
    variance += (x[c] - mean) * (x[c] - mean) / static_cast<double>(cols);
  }
  return {mean, 1 / std::sqrt(variance + kEpsilon)};
}

Values forward(Norm norm, const Values& x, const Values& weight, const Values& bias) {
  const std::size_t cols = weight.size();
  Values out(x.size());
  for (std::size_t begin = 0; begin < x.size(); begin += cols) {
    const RowStatistics s = statistics(norm, &x[begin], cols);
    for (std::size_t c = 0; c < cols; ++c) {
      out[begin + c] = (x[begin + c] - s.mean) * s.rstd * weight[c] + bias[c];
    }
  }
  return out;
}

struct Gradients {
  Values dx;
  Values dweight;
  Values dbias;
};

// From the derivative of each output by each input, without the closed form of the kernel:
// dn[j]/dx[i] = rstd * ((i == j) - [layer] / D - n[i] n[j] / D).
Gradients backward(Norm norm, const Values& dout, const Values& x, const Values& weight) {
  const std::size_t cols = weight.size();
  const auto d = static_cast<double>(cols);
  Gradients g{Values(x.size()), Values(cols), Values(cols)};
  for (std::size_t begin = 0; begin < x.size(); begin += cols) {
    const RowStatistics s = statistics(norm, &x[begin], cols);
    const auto n = [&](std::size_t c) { return (x[begin + c] - s.mean) * s.rstd; };
    double sum = 0;
    double sum_n = 0;
    for (std::size_t j = 0; j < cols; ++j) {
      g.dweight[j] += dout[begin + j] * n(j);
      g.dbias[j] += dout[begin + j];
      sum += dout[begin + j] * weight[j];
      sum_n += dout[begin + j] * weight[j] * n(j);
    }
    for (std::size_t i = 0; i < cols; ++i) {
      const double shared = (norm == Norm::layer ? sum / d : 0) + n(i) * sum_n / d;
      g.dx[begin + i] = s.rstd * (dout[begin + i] * weight[i] - shared);
    }
  }
  return g;
}

class NormKernels : public ::testing::TestWithParam<Norm> {
 protected:
  std::unique_ptr<Device> device_ = make_cpu_device(2);
};

TEST_P(NormKernels, ReferenceGradientIsThatOfTheReference) {
  const Norm norm = GetParam();
  const Values x = widen(random_values(21, 1));
  const Values weight = widen(random_values(7, 2));
  const Values bias = widen(random_values(7, 3));
  const Values dout = widen(random_values(21, 4));
  const Gradients g = backward(norm, dout, x, weight);
  expect_close(
      central_differences([&](const Values& v) { return forward(norm, v, weight, bias); }, x, dout),
      g.dx, 1e-7);
  expect_close(
      central_differences([&](const Values& v) { return forward(norm, x, v, bias); }, weight, dout),
      g.dweight, 1e-7);
  expect_close(
      central_differences([&](const Values& v) { return forward(norm, x, weight, v); }, bias, dout),
      g.dbias, 1e-7);
}

TEST_P(NormKernels, ForwardAgreesWithTheReference) {
  for (const auto& [rows, cols] : kRaggedShapes) {
    SCOPED_TRACE(Shape({rows, cols}).to_string());
    auto x = random_values(rows * cols, 1);
    for (float& value : x) value += 3;  // a mean well away from 0
    const auto weight = random_values(cols, 2);
    const auto bias = random_values(cols, 3);
    Tensor out = to_device(*device_, random_values(rows * cols, 4), {rows, cols});
    Tensor mean = to_device(*device_, random_values(rows, 5), {rows});
    Tensor rstd = to_device(*device_, random_values(rows, 6), {rows});
    const Tensor x_tensor = to_device(*device_, x, {rows, cols});
    const Tensor gain_tensor = to_device(*device_, weight, {cols});
    const Values no_bias(static_cast<std::size_t>(cols));
    Values mean_expected;
    Values rstd_expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      const RowStatistics s =
          statistics(GetParam(), &widen(x)[static_cast<std::size_t>(row * cols)],
                     static_cast<std::size_t>(cols));
      mean_expected.push_back(s.mean);
      rstd_expected.push_back(s.rstd);
    }
    const double tolerance = 2e-6;
    if (GetParam() == Norm::layer) {
      ops::run(*device_, LayerNorm{.out = out,
                                   .mean = mean,
                                   .rstd = rstd,
                                   .x = x_tensor,
                                   .weight = gain_tensor,
                                   .bias = to_device(*device_, bias, {cols}),
                                   .epsilon = static_cast<float>(kEpsilon)});
      expect_close(from_device(*device_, out),
                   forward(Norm::layer, widen(x), widen(weight), widen(bias)), tolerance);
      expect_close(from_device(*device_, mean), mean_expected, tolerance);
      ops::run(*device_, LayerNorm{.out = out,
                                   .mean = mean,
                                   .rstd = rstd,
                                   .x = x_tensor,
                                   .weight = gain_tensor,
                                   .bias = {},
                                   .epsilon = static_cast<float>(kEpsilon)});
    } else {
      ops::run(*device_, RmsNorm{.out = out,
                                 .rstd = rstd,
                                 .x = x_tensor,
                                 .weight = gain_tensor,
                                 .epsilon = static_cast<float>(kEpsilon)});
    }
    expect_close(from_device(*device_, out), forward(GetParam(), widen(x), widen(weight), no_bias),
                 tolerance);
    expect_close(from_device(*device_, rstd), rstd_expected, tolerance);
  }
}

// Twice, since the summands are only read.
TEST_P(NormKernels, OfASumKeepTheSumAndReadItsSummands) {
  for (const auto& [rows, cols] : kRaggedShapes) {
    SCOPED_TRACE(Shape({rows, cols}).to_string());
    const auto branch = random_values(rows * cols, 1);
    const auto residual = random_values(rows * cols, 2);
    const auto weight = random_values(cols, 3);
    std::vector<float> sum(branch);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += residual[i];
    const Values no_bias(static_cast<std::size_t>(cols));
    Tensor out(*device_, DType::f32, {rows, cols});
    Tensor sum_tensor = to_device(*device_, random_values(rows * cols, 4), {rows, cols});
    Tensor mean(*device_, DType::f32, {rows});
    Tensor rstd(*device_, DType::f32, {rows});
    const Tensor branch_tensor = to_device(*device_, branch, {rows, cols});
    const Tensor residual_tensor = to_device(*device_, residual, {rows, cols});
    const Tensor weight_tensor = to_device(*device_, weight, {cols});
    for (int pass = 0; pass < 2; ++pass) {
      if (GetParam() == Norm::layer) {
        ops::run(*device_, AddLayerNorm{.out = out,
                                        .sum = sum_tensor,
                                        .mean = mean,
                                        .rstd = rstd,
                                        .residual = residual_tensor,
                                        .branch = branch_tensor,
                                        .weight = weight_tensor,
                                        .bias = {},
                                        .epsilon = static_cast<float>(kEpsilon)});
      } else {
        ops::run(*device_, AddRmsNorm{.out = out,
                                      .sum = sum_tensor,
                                      .rstd = rstd,
                                      .residual = residual_tensor,
                                      .branch = branch_tensor,
                                      .weight = weight_tensor,
                                      .epsilon = static_cast<float>(kEpsilon)});
      }
      EXPECT_EQ(from_device(*device_, sum_tensor), sum);
      expect_close(from_device(*device_, out),
                   forward(GetParam(), widen(sum), widen(weight), no_bias), 2e-6);
    }
    EXPECT_EQ(from_device(*device_, residual_tensor), residual);
    EXPECT_EQ(from_device(*device_, branch_tensor), branch);
  }
}

TEST_P(NormKernels, BackwardAddsTheReferenceGradients) {
  for (const auto& [rows, cols] : kRaggedShapes) {
    SCOPED_TRACE(Shape({rows, cols}).to_string());
    const auto x = random_values(rows * cols, 1);
    const auto weight = random_values(cols, 2);
    const auto dout = random_values(rows * cols, 3);
    const auto dx_before = random_values(rows * cols, 4);
    const auto dgain_before = random_values(cols, 5);
    const auto dbias_before = random_values(cols, 6);
    std::vector<float> mean;
    std::vector<float> rstd;
    for (std::int64_t row = 0; row < rows; ++row) {
      const RowStatistics s =
          statistics(GetParam(), &widen(x)[static_cast<std::size_t>(row * cols)],
                     static_cast<std::size_t>(cols));
      mean.push_back(static_cast<float>(s.mean));
      rstd.push_back(static_cast<float>(s.rstd));
    }
    Tensor dx = to_device(*device_, dx_before, {rows, cols});
    Tensor dweight = to_device(*device_, dgain_before, {cols});
    Tensor dbias = to_device(*device_, dbias_before, {cols});
    Tensor dout_tensor = to_device(*device_, dout, {rows, cols});
    const Tensor x_tensor = to_device(*device_, x, {rows, cols});
    const Tensor rstd_tensor = to_device(*device_, rstd, {rows});
    const Tensor gain_tensor = to_device(*device_, weight, {cols});
    if (GetParam() == Norm::layer) {
      ops::run(*device_, LayerNormBackward{.dx = dx,
                                           .dweight = dweight,
                                           .dbias = dbias,
                                           .dout = dout_tensor,
                                           .x = x_tensor,
                                           .mean = to_device(*device_, mean, {rows}),
                                           .rstd = rstd_tensor,
                                           .weight = gain_tensor});
    } else {
      ops::run(*device_, RmsNormBackward{.dx = dx,
                                         .dweight = dweight,
                                         .dout = dout_tensor,
                                         .x = x_tensor,
                                         .rstd = rstd_tensor,
                                         .weight = gain_tensor});
    }
    const Gradients g = backward(GetParam(), widen(dout), widen(x), widen(weight));
    // One column of layer norm has rstd = 1 / sqrt(epsilon), and gradients that cancel to 0.
    expect_close(from_device(*device_, dx), plus(widen(dx_before), g.dx), cols == 1 ? 1e-4 : 2e-6);
    expect_close(from_device(*device_, dweight), plus(widen(dgain_before), g.dweight), 2e-6);
    if (GetParam() == Norm::layer) {
      expect_close(from_device(*device_, dbias), plus(widen(dbias_before), g.dbias), 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, NormKernels, ::testing::Values(Norm::layer, Norm::rms),
                         [](const auto& norm) {
                           return norm.param == Norm::layer ? "LayerNorm" : "RmsNorm";
                         });

TEST(LayerNormBackward, LeavesABiasThatDoesNotExistAlone) {
  const auto device = make_cpu_device(1);
  Tensor values = to_device(*device, random_values(10, 1), {2, 5});
  const Tensor statistic = to_device(*device, random_values(2, 2), {2});
  const Tensor weight = to_device(*device, random_values(5, 3), {5});
  Tensor dx(*device, DType::f32, {2, 5});
  Tensor dweight(*device, DType::f32, {5});
  ops::run(*device, LayerNormBackward{.dx = dx,
                                      .dweight = dweight,
                                      .dbias = {},
                                      .dout = values,
                                      .x = values,
                                      .mean = statistic,
                                      .rstd = statistic,
                                      .weight = weight});
  EXPECT_NE(from_device(*device, dweight)[0], 0.0F);
}

}  // namespace
}  // namespace redspine
