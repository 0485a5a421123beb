#include <gtest/gtest.h>

#include <cmath>

#include "tensor/ops.h"
#include "tests/support/expect_close.h"
#include "tests/support/random_tensor.h"
#include "tests/tensor/gelu_reference.h"
#include "tests/tensor/shapes.h"

namespace redspine {
namespace {

using namespace redspine::testing;

double silu(double x) { return x / (1 + std::exp(-x)); }

double silu_slope(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s + x * s * (1 - s);
}

// [rows, 2f] -> [rows, f].
Values swiglu(const Values& gate_up, std::size_t f) {
  Values out;
  for (std::size_t row = 0; row < gate_up.size(); row += 2 * f) {
    for (std::size_t c = 0; c < f; ++c)
      out.push_back(silu(gate_up[row + c]) * gate_up[row + f + c]);
  }
  return out;
}

Values swiglu_backward(const Values& dout, const Values& gate_up, std::size_t f) {
  Values dgate_up(gate_up.size());
  for (std::size_t row = 0; row < gate_up.size(); row += 2 * f) {
    for (std::size_t c = 0; c < f; ++c) {
      const double d = dout[row / 2 + c];
      dgate_up[row + c] = d * gate_up[row + f + c] * silu_slope(gate_up[row + c]);
      dgate_up[row + f + c] = d * silu(gate_up[row + c]);
    }
  }
  return dgate_up;
}

class GeluKernels : public ::testing::TestWithParam<GeluKind> {
 protected:
  std::unique_ptr<Device> device_ = make_cpu_device(2);
};

// x[r, c] + bias[c] as a product over one inner element, which rounds only where the bias is added.
struct GeluCase {
  std::vector<float> x;
  std::vector<float> bias;
  Values before;
  Values after;

  GeluCase(GeluKind kind, std::int64_t rows, std::int64_t cols)
      : x(random_values(rows, 1, 3)), bias(random_values(cols, 2)) {
    for (const float a : x) {
      for (const float b : bias) {
        before.push_back(static_cast<double>(a) + static_cast<double>(b));
        after.push_back(gelu(kind, before.back()));
      }
    }
  }
};

TEST_P(GeluKernels, ForwardAgreesWithTheReference) {
  for (const auto& [rows, cols] : kRaggedShapes) {
    const GeluCase c(GetParam(), rows, cols);
    Tensor out = to_device(*device_, random_values(rows * cols, 3), {rows, cols});
    Tensor x = to_device(*device_, random_values(rows * cols, 4), {rows, cols});
    const auto ones = std::vector<float>(static_cast<std::size_t>(cols), 1.0F);
    ops::run(*device_, MatmulGelu{.out = out,
                                  .x = x,
                                  .a = to_device(*device_, c.x, {rows, 1}),
                                  .b = to_device(*device_, ones, {cols, 1}),
                                  .bias = to_device(*device_, c.bias, {cols}),
                                  .kind = GetParam()});
    expect_close(from_device(*device_, x), c.before, 1e-7);
    expect_close(from_device(*device_, out), c.after, 2e-7);
  }
}

TEST_P(GeluKernels, ApplyToAProductWithoutBias) {
  constexpr std::int64_t kM = 37, kN = 129, kK = 300;
  const auto a = random_values(kM * kK, 1);
  const auto b = random_values(kN * kK, 2, 0.1F);
  Values x;
  Values out;
  for (std::int64_t i = 0; i < kM; ++i) {
    for (std::int64_t j = 0; j < kN; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < kK; ++l) {
        sum += static_cast<double>(a[static_cast<std::size_t>(i * kK + l)]) *
               static_cast<double>(b[static_cast<std::size_t>(j * kK + l)]);
      }
      x.push_back(sum);
      out.push_back(gelu(GetParam(), sum));
    }
  }
  Tensor x_tensor(*device_, DType::f32, {kM, kN});
  Tensor out_tensor(*device_, DType::f32, {kM, kN});
  ops::run(*device_, MatmulGelu{.out = out_tensor,
                                .x = x_tensor,
                                .a = to_device(*device_, a, {kM, kK}),
                                .b = to_device(*device_, b, {kN, kK}),
                                .bias = {},
                                .kind = GetParam()});
  expect_close(from_device(*device_, x_tensor), x, 1e-6);
  expect_close(from_device(*device_, out_tensor), out, 1e-6);
}

TEST_P(GeluKernels, ReferenceGradientIsThatOfTheReference) {
  const Values x = widen(random_values(50, 1, 2));
  const Values dout = widen(random_values(50, 2));
  Values expected;
  for (std::size_t i = 0; i < x.size(); ++i)
    expected.push_back(dout[i] * gelu_slope(GetParam(), x[i]));
  const auto forward = [](const Values& at) {
    Values out;
    for (double value : at) out.push_back(gelu(GetParam(), value));
    return out;
  };
  expect_close(central_differences(forward, x, dout), expected, 1e-7);
}

TEST_P(GeluKernels, BackwardAgreesWithTheReference) {
  constexpr std::int64_t kInner = 5;
  for (const auto& [rows, cols] : kRaggedShapes) {
    const auto x = random_values(rows * cols, 1, 3);
    const auto a = random_values(rows * kInner, 2);
    const auto b = random_values(kInner * cols, 3);
    Values expected;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        double dout = 0;
        for (std::int64_t i = 0; i < kInner; ++i) {
          dout += static_cast<double>(a[static_cast<std::size_t>(r * kInner + i)]) *
                  static_cast<double>(b[static_cast<std::size_t>(i * cols + c)]);
        }
        const auto at = static_cast<double>(x[static_cast<std::size_t>(r * cols + c)]);
        expected.push_back(dout * gelu_slope(GetParam(), at));
      }
    }
    Tensor dx = to_device(*device_, random_values(rows * cols, 4), {rows, cols});
    ops::run(*device_, MatmulGeluBackward{.dx = dx,
                                          .a = to_device(*device_, a, {rows, kInner}),
                                          .b = to_device(*device_, b, {kInner, cols}),
                                          .x = to_device(*device_, x, {rows, cols}),
                                          .kind = GetParam()});
    expect_close(from_device(*device_, dx), expected, 1e-6);
  }
}

TEST_P(GeluKernels, HaveTheirLimitsAtLargeArguments) {
  const Tensor large = to_device<float>(*device_, {-1e4F, -40, 40, 1e4F}, {4, 1});
  const Tensor one = to_device<float>(*device_, {1}, {1, 1});
  Tensor out(*device_, DType::f32, {4, 1});
  Tensor x(*device_, DType::f32, {4, 1});
  ops::run(*device_,
           MatmulGelu{.out = out, .x = x, .a = large, .b = one, .bias = {}, .kind = GetParam()});
  EXPECT_EQ(from_device(*device_, out), (std::vector<float>{-0.0F, -0.0F, 40, 1e4F}));
  const Tensor ones = to_device<float>(*device_, {1, 1, 1, 1}, {4, 1});
  ops::run(*device_,
           MatmulGeluBackward{.dx = out, .a = ones, .b = one, .x = large, .kind = GetParam()});
  EXPECT_EQ(from_device(*device_, out), (std::vector<float>{0, 0, 1, 1}));
}

INSTANTIATE_TEST_SUITE_P(EachKind, GeluKernels, ::testing::ValuesIn(kGeluKinds));

TEST(Swiglu, AgreesWithTheReference) {
  const auto device = make_cpu_device(2);
  for (const auto& [rows, cols] : kRaggedShapes) {
    const auto gate_up = random_values(rows * 2 * cols, 1, 2);
    Tensor out = to_device(*device, random_values(rows * cols, 2), {rows, cols});
    ops::run(*device, Swiglu{.out = out, .gate_up = to_device(*device, gate_up, {rows, 2 * cols})});
    expect_close(from_device(*device, out), swiglu(widen(gate_up), static_cast<std::size_t>(cols)),
                 1e-6);
  }
}

TEST(Swiglu, ReferenceGradientIsThatOfTheReference) {
  const Values gate_up = widen(random_values(30, 1));
  const Values dout = widen(random_values(15, 2));
  expect_close(central_differences([](const Values& v) { return swiglu(v, 5); }, gate_up, dout),
               swiglu_backward(dout, gate_up, 5), 1e-7);
}

TEST(Swiglu, BackwardAgreesWithTheReference) {
  const auto device = make_cpu_device(2);
  for (const auto& [rows, cols] : kRaggedShapes) {
    const auto gate_up = random_values(rows * 2 * cols, 1, 2);
    const auto dout = random_values(rows * cols, 2);
    Tensor dgate_up = to_device(*device, random_values(rows * 2 * cols, 3), {rows, 2 * cols});
    ops::run(*device, SwigluBackward{.dgate_up = dgate_up,
                                     .dout = to_device(*device, dout, {rows, cols}),
                                     .gate_up = to_device(*device, gate_up, {rows, 2 * cols})});
    expect_close(from_device(*device, dgate_up),
                 swiglu_backward(widen(dout), widen(gate_up), static_cast<std::size_t>(cols)),
                 1e-6);
  }
}

}  // namespace
}  // namespace redspine
