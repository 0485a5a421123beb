#include "tensor/random_normal.h"

#include <cassert>
#include <cmath>

#include "tensor/philox.h"
#include "tensor/portable_math.h"

namespace redspine {
namespace {

template <std::size_t n>
double polynomial(const double (&coefficients)[n], double x) {
  double sum = 0.0;
  for (std::size_t i = n; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// The quantile function of the standard normal distribution, AS 241 (PPND16): relative error about
// 1e-16. Its constants are those of the paper.
double normal_quantile(double p) {
  static constexpr double kA[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                  1.9715909503065514427e3, 1.3731693765509461125e4,
                                  4.5921953931549871457e4, 6.7265770927008700853e4,
                                  3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr double kB[] = {1.0,
                                  4.2313330701600911252e1,
                                  6.8718700749205790830e2,
                                  5.3941960214247511077e3,
                                  2.1213794301586595867e4,
                                  3.9307895800092710610e4,
                                  2.8729085735721942674e4,
                                  5.2264952788528545610e3};
  static constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                  5.76949722146069140550e0,  3.64784832476320460504e0,
                                  1.27045825245236838258e0,  2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kD[] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                  1.78482653991729133580e0,  2.96560571828504891230e-1,
                                  2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kF[] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-portable::log(q < 0.0 ? p : 1.0 - p));
  const double tail = r <= 5.0 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6)
                               : polynomial(kE, r - 5.0) / polynomial(kF, r - 5.0);
  return q < 0.0 ? -tail : tail;
}

double normal_of(std::uint32_t bits) {
  return normal_quantile((static_cast<double>(bits) + 0.5) * 0x1p-32);
}

// out[i] has the number first + i. One Philox call gives four neighbours.
void fill_run(std::span<float> out, std::uint64_t first, std::uint64_t key, double scale) {
  std::size_t i = 0;
  while (i < out.size()) {
    const std::uint64_t element = first + i;
    const std::uint64_t group = element / 4;
    const PhiloxCounter bits = philox4x32(
        key, {static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32), 0, 0});
    for (std::size_t lane = element % 4; lane < 4 && i < out.size(); ++lane, ++i) {
      out[i] = static_cast<float>(scale * normal_of(bits[lane]));
    }
  }
}

}  // namespace

void fill_normal(std::span<float> out, const MatrixPiece& piece, std::uint64_t key,
                 float standard_deviation) {
  assert(static_cast<std::int64_t>(out.size()) == piece.num_rows * piece.num_cols);
  const double scale = static_cast<double>(standard_deviation);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < piece.num_rows; ++row) {
    const auto first = static_cast<std::uint64_t>(piece.first_element + row * piece.row_stride);
    fill_run(out.subspan(static_cast<std::size_t>(row * piece.num_cols),
                         static_cast<std::size_t>(piece.num_cols)),
             first, key, scale);
  }
}

}  // namespace redspine
