// Elementary functions that the compiler can vectorise: no branches, no calls, no tables. Inside a
// `#pragma omp simd` loop they run at the width of the machine. Pure functions of their argument.
//
// The polynomials were fitted for this file: minimax in the relative error, by Lawson's iteration.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace redspine {

/// e^x within 1 ulp (gradual underflow included); 0 at -inf, inf beyond the range, NaN for NaN.
[[gnu::always_inline]] inline float vector_exp(float x) {
  // Outside of these bounds the result has already rounded to 0 or to inf. A NaN passes both.
  x = x < -104.0F ? -104.0F : x;
  x = x > 89.0F ? 89.0F : x;

  // x = n log(2) + r. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits; the
  // bits are used instead of a conversion because they are defined for NaN as well.
  constexpr float kRound = 12582912.0F;
  const float shifted = std::fma(x, 1.44269504F, kRound);
  const float n = shifted - kRound;
  float r =
      std::fma(n, -0.693145752F, x);  // log(2) in two parts; products with the first are exact
  r = std::fma(n, -1.42860677e-6F, r);

  float p = 0.0013814467F;
  p = std::fma(p, r, 0.008368781F);
  p = std::fma(p, r, 0.041668393F);
  p = std::fma(p, r, 0.1666652F);
  p = std::fma(p, r, 0.49999994F);
  p = std::fma(p * r, r, r) + 1.0F;

  // 2^n in two factors, since n spans [-150, 128] and one factor reaches [-126, 127].
  const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                              std::bit_cast<std::uint32_t>(kRound));
  const std::int32_t half = bits >> 1;
  const auto scale = [](std::int32_t power) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(power + 127) << 23);
  };
  return p * scale(half) * scale(bits - half);
}

/// The logistic function 1 / (1 + e^-x) and its slope value * (1 - value), both to full relative
/// accuracy on both sides: 1 - value is never computed.
struct Logistic {
  float value;
  float slope;
};

[[gnu::always_inline]] inline Logistic logistic(float x) {
  const float e = vector_exp(-std::fabs(x));
  const float upper = 1.0F / (1.0F + e);  // the value at |x|
  return {x < 0.0F ? e * upper : upper, e * upper * upper};
}

/// The standard normal distribution at x: density, and cumulative probability
/// (1 + erf(x / sqrt(2))) / 2, the latter within 1e-7, and in the lower tail within 5e-7 relative.
struct StandardNormal {
  float density;
  float cumulative;
};

[[gnu::always_inline]] inline StandardNormal standard_normal(float x) {
  // e^(-x^2/2), the rounding error of the square put back: it would grow with x.
  const float square = x * x;
  const float error = std::fma(x, x, -square);
  const float e = vector_exp(-0.5F * square);
  const float exact = square < 300.0F ? std::fma(-0.5F * error, e, e) : e;

  // The tail beyond |x| is e^(-x^2/2) times a polynomial in t without constant term.
  const float t = 1.0F / std::fma(0.25F, std::fabs(x), 1.0F);
  float q = 0.01657966710627079F;
  q = std::fma(q, t, -0.06279222667217255F);
  q = std::fma(q, t, 0.05165242403745651F);
  q = std::fma(q, t, 0.028435880318284035F);
  q = std::fma(q, t, 0.012711654417216778F);
  q = std::fma(q, t, 0.0866570845246315F);
  q = std::fma(q, t, 0.07199931889772415F);
  q = std::fma(q, t, 0.09551575034856796F);
  q = std::fma(q, t, 0.09949254989624023F);
  q = std::fma(q, t, 0.0997479036450386F);
  const float tail = exact * q * t;

  // Near 0 a sum from 1/2 loses less than a tail that rounds at every step.
  float c = 9.246839181287214e-05F;
  c = std::fma(c, square, -0.0011653507826849818F);
  c = std::fma(c, square, 0.009964167140424252F);
  c = std::fma(c, square, -0.06648872792720795F);
  c = std::fma(c, square, 0.3989422023296356F);
  const float centre = std::fma(c, x, 0.5F);
  const float outside = x < 0.0F ? tail : 1.0F - tail;
  return {0.398942280F * exact, square < 1.0F ? centre : outside};
}

}  // namespace redspine
