// The kinds of GELU and their slopes, for loops that vectorise. Pure functions.
#pragma once

#include "tensor/cpu/vector_math.h"
#include "tensor/gelu.h"
#include "tensor/kernels.h"

namespace redspine {

struct GeluTanh {
  static float value(float x) { return x * logistic(TanhGelu::exponent(x)).value; }
  static float slope(float x) {
    const Logistic s = logistic(TanhGelu::exponent(x));
    return s.value + x * s.slope * TanhGelu::exponent_slope(x);
  }
};

struct GeluExact {
  static float value(float x) { return x * standard_normal(x).cumulative; }
  static float slope(float x) {
    const StandardNormal normal = standard_normal(x);
    return normal.cumulative + x * normal.density;
  }
};

/// body.operator()<Kind>() for the functions of `kind`.
template <class Body>
void with_gelu(GeluKind kind, const Body& body) {
  switch (kind) {
    case GeluKind::tanh:
      return body.template operator()<GeluTanh>();
    case GeluKind::exact:
      return body.template operator()<GeluExact>();
  }
}

}  // namespace redspine
