// A sum of f64 terms that no order enters: a number of fixed point so long that every term is added
// to it without rounding, as integers. Its digits are plain numbers, so sums of several ranks are
// added up by any reduction of integers. Pure, local.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace redspine {

/// Terms up to 2^285, to multiples of 2^-160 (what lies below is cut off, term by term); up to 2^30
/// terms between two calls of normalise().
class ExactSum {
 public:
  /// Digit i counts multiples of 2^(32 i - 160); one more counts the terms that are not finite or
  /// too large.
  static constexpr int kNumDigits = 14;
  static constexpr int kNumValues = kNumDigits + 1;

  ExactSum() = default;
  explicit ExactSum(std::span<const std::int64_t, kNumValues> values) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = values[i];
  }

  void add(double term) {
    int power = 0;
    const double fraction = std::frexp(term, &power);
    if (!std::isfinite(term) || power > kMaxPower) {
      ++values_[kNumDigits];
      return;
    }
    // The term is mantissa * 2^position * 2^-160, both integers.
    auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, kMantissaBits));
    int position = power - kMantissaBits + kFractionBits;
    if (position < 0) {
      mantissa = position <= -kMantissaBits ? 0 : mantissa / (std::int64_t{1} << -position);
      position = 0;
    }
    const std::int64_t sign = mantissa < 0 ? -1 : 1;
    const auto digit = static_cast<std::size_t>(position / kDigitBits);
    const auto wide = static_cast<Wide>(mantissa * sign) << (position % kDigitBits);
    values_[digit] += sign * static_cast<std::int64_t>(wide & kDigitMask);
    values_[digit + 1] += sign * static_cast<std::int64_t>(wide >> kDigitBits & kDigitMask);
    values_[digit + 2] += sign * static_cast<std::int64_t>(wide >> (2 * kDigitBits));
  }

  ExactSum& operator+=(const ExactSum& other) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
    return *this;
  }

  /// Brings every digit but the last back to [0, 2^32): the sum stays. Afterwards the values of up
  /// to 2^20 ranks can be added as f64 without rounding.
  void normalise() {
    for (std::size_t i = 0; i + 1 < kNumDigits; ++i) {
      const std::int64_t carry = values_[i] >> kDigitBits;
      values_[i] -= carry * (std::int64_t{1} << kDigitBits);
      values_[i + 1] += carry;
    }
  }

  const std::array<std::int64_t, kNumValues>& values() const { return values_; }

  /// The sum, to within an ulp or two; the same bits for the same sum. NaN where a term was not
  /// finite.
  double total() const {
    if (values_[kNumDigits] != 0) return std::numeric_limits<double>::quiet_NaN();
    ExactSum sum = *this;
    sum.normalise();
    double total = 0.0;
    for (std::size_t i = kNumDigits; i-- > 0;) {
      total += std::ldexp(static_cast<double>(sum.values_[i]),
                          static_cast<int>(i) * kDigitBits - kFractionBits);
    }
    return total;
  }

 private:
  using Wide = unsigned __int128;
  static constexpr int kMantissaBits = 53;
  static constexpr int kDigitBits = 32;
  static constexpr int kFractionBits = 160;
  static constexpr int kMaxPower = 285;
  static constexpr std::uint64_t kDigitMask = 0xFFFFFFFF;

  std::array<std::int64_t, kNumValues> values_{};
};

}  // namespace redspine
