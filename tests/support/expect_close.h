// Comparison of computed values with an f64 reference, and of a gradient with central differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace redspine::testing {

/// Every element within `tolerance` of the reference, relative to its largest magnitude.
template <class T>
void expect_close(const std::vector<T>& actual, const std::vector<double>& expected,
                  double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double scale = 0;
  for (double value : expected) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
    ASSERT_LE(error, tolerance * scale + 1e-30)  // a NaN is not <= anything
        << "element " << i << ": " << actual[i] << " for " << expected[i];
  }
}

using Values = std::vector<double>;

/// d/dx of sum_i dout[i] * f(x)[i] by central differences, in f64.
inline Values central_differences(const std::function<Values(const Values&)>& f, Values x,
                                  const Values& dout, double step = 1e-4) {
  const auto total = [&](const Values& at) {
    const Values out = f(at);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += dout[i] * out[i];
    return sum;
  };
  Values gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double centre = x[i];
    x[i] = centre + step;
    const double above = total(x);
    x[i] = centre - step;
    const double below = total(x);
    x[i] = centre;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

/// What a kernel that accumulates should leave where `before` was.
inline Values plus(const Values& before, const Values& added) {
  Values sum = before;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
  return sum;
}

}  // namespace redspine::testing
