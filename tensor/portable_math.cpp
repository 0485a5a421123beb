#include "tensor/portable_math.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace redspine::portable {
namespace {

// log(2) in two parts, of which products of the first with a small integer are exact.
constexpr double kLog2High = 0x1.62e42fefap-1;
constexpr double kLog2Low = 0x1.cf79abc9e3b3ap-40;
// pi / 2 in three parts of full length.
constexpr double kHalfPi1 = 0x1.921fb54442d18p+0;
constexpr double kHalfPi2 = 0x1.1a62633145c07p-54;
constexpr double kHalfPi3 = -0x1.f1976b7ed8fbcp-110;

// The sum of coefficients[i] * x^i.
template <std::size_t n>
double polynomial(const double (&coefficients)[n], double x) {
  double sum = coefficients[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) sum = std::fma(sum, x, coefficients[i]);
  return sum;
}

// sin and cos of |r| <= pi / 4, by their series.
double sin_near_zero(double r) {
  constexpr double kOver[] = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  const double square = r * r;
  return std::fma(r * square, polynomial(kOver, square), r);
}
double cos_near_zero(double r) {
  constexpr double kOver[] = {
      1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
  const double square = r * r;
  // 1 - square / 2 with the rounding error put back.
  const double half = 0.5 * square;
  const double head = 1.0 - half;
  const double error = (1.0 - head) - half;
  return head + std::fma(square * square, polynomial(kOver, square), error);
}

struct Quadrant {
  double rest;  // in [-pi / 4, pi / 4]
  int number;   // modulo 4
};

Quadrant quadrant_of(double x) {
  const double n = std::nearbyint(x * 0x1.45f306dc9c883p-1);
  double rest = std::fma(-n, kHalfPi1, x);
  rest = std::fma(-n, kHalfPi2, rest);
  rest = std::fma(-n, kHalfPi3, rest);
  return {rest, static_cast<int>(static_cast<std::int64_t>(n) & 3)};
}

double of_quadrant(double rest, int number) {
  const double value = number % 2 == 0 ? sin_near_zero(rest) : cos_near_zero(rest);
  return number < 2 ? value : -value;
}

}  // namespace

double log(double x) {
  if (std::isnan(x) || x < 0.0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0.0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  int power = 0;
  double mantissa = std::frexp(x, &power);  // in [1/2, 1)
  if (mantissa < 0x1.6a09e667f3bcdp-1) {    // below sqrt(1/2)
    mantissa *= 2.0;
    --power;
  }
  // log(1 + f) = 2 atanh(s), s = f / (2 + f), as f - (f^2/2 - s (f^2/2 + rest)), whose largest term
  // is exact.
  const double f = mantissa - 1.0;
  const double s = f / (2.0 + f);
  const double square = s * s;
  constexpr double kOver[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                              2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const double rest = square * polynomial(kOver, square);
  const double half_square = 0.5 * f * f;
  const auto n = static_cast<double>(power);
  return n * kLog2High - ((half_square - std::fma(s, half_square + rest, n * kLog2Low)) - f);
}

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 710.0) return std::numeric_limits<double>::infinity();
  if (x < -746.0) return 0.0;
  const double n = std::nearbyint(x * 0x1.71547652b82fep+0);
  const double rest = std::fma(-n, kLog2Low, std::fma(-n, kLog2High, x));
  constexpr double kOver[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                              1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                              1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const double above_one = std::fma(rest * rest, polynomial(kOver, rest), rest);
  // In two steps, as 2^n alone may be out of range.
  const int half = static_cast<int>(n) / 2;
  return std::ldexp(std::ldexp(1.0 + above_one, half), static_cast<int>(n) - half);
}

double pow(double base, double exponent) { return exp(exponent * log(base)); }

double sin(double x) {
  const auto [rest, number] = quadrant_of(x);
  return of_quadrant(rest, number);
}

double cos(double x) {
  const auto [rest, number] = quadrant_of(x);
  return of_quadrant(rest, (number + 1) & 3);
}

}  // namespace redspine::portable
