// The two kinds of GELU and their slopes, for loops that vectorise. Pure functions.
#pragma once

#include "tensor/cpu/vector_math.h"

namespace redspine {

struct GeluTanh {
  // (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)): one exponential, and no cancellation for negative u.
  static constexpr float kTwoRoot = 1.59576912F;  // 2 sqrt(2 / pi)
  static constexpr float kCubic = 0.044715F;

  static float value(float x) { return x * logistic(kTwoRoot * x * (1.0F + kCubic * x * x)).value; }
  static float slope(float x) {
    const Logistic s = logistic(kTwoRoot * x * (1.0F + kCubic * x * x));
    return s.value + x * s.slope * kTwoRoot * (1.0F + 3.0F * kCubic * x * x);
  }
};

struct GeluExact {
  static float value(float x) { return x * standard_normal(x).cumulative; }
  static float slope(float x) {
    const StandardNormal normal = standard_normal(x);
    return normal.cumulative + x * normal.density;
  }
};

}  // namespace redspine
