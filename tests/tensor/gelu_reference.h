// Every kind of GELU with its value and slope in f64, so that a new one is tested wherever they
// are.
#pragma once

#include <array>
#include <cmath>
#include <numbers>

#include "tensor/enum_words.h"
#include "tensor/kernels.h"

namespace redspine::testing {

inline constexpr std::array kGeluKinds = {GeluKind::tanh, GeluKind::exact};
static_assert(!is_enumerator<static_cast<GeluKind>(kGeluKinds.size())>(), "a kind is not tested");

inline double gelu(GeluKind kind, double x) {
  switch (kind) {
    case GeluKind::tanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case GeluKind::exact:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  }
  __builtin_unreachable();
}

inline double gelu_slope(GeluKind kind, double x) {
  switch (kind) {
    case GeluKind::tanh: {
      const double root = std::sqrt(2 / std::numbers::pi);
      const double t = std::tanh(root * (x + 0.044715 * x * x * x));
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
    }
    case GeluKind::exact:
      return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) +
             x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  }
  __builtin_unreachable();
}

}  // namespace redspine::testing
