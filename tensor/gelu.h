// What every backend's GELU by tanh is made of. Pure functions; local.
#pragma once

namespace redspine {

/// gelu(x) = x * logistic(exponent(x)), since (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)): one
/// exponential, and no cancellation for negative u.
struct TanhGelu {
  static constexpr float kTwoRoot = 1.59576912F;  // 2 sqrt(2 / pi)
  static constexpr float kCubic = 0.044715F;

  static constexpr float exponent(float x) { return kTwoRoot * x * (1.0F + kCubic * x * x); }
  /// d exponent / dx.
  static constexpr float exponent_slope(float x) {
    return kTwoRoot * (1.0F + 3.0F * kCubic * x * x);
  }
};

}  // namespace redspine
