// A sum of scalars over micro-batches and ranks: in f64, or in exact mode one that no order enters.
// Its numbers travel as f64, beside others. Local.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "tensor/exact_sum.h"

namespace redspine {

class ScalarSum {
 public:
  explicit ScalarSum(double value = 0.0) : value_(value) {}
  explicit ScalarSum(ExactSum sum) : exact_(sum) { exact_->normalise(); }

  double total() const { return exact_ ? exact_->total() : value_; }

  /// What ranks add up, number by number: the same as many on all of them. 2^20 ranks at most.
  std::vector<double> numbers() const {
    if (!exact_) return {value_};
    std::vector<double> numbers;
    for (const std::int64_t value : exact_->values()) {
      numbers.push_back(static_cast<double>(value));
    }
    return numbers;
  }
  /// From such sums.
  void set_numbers(std::span<const double> numbers) {
    if (!exact_) {
      value_ = numbers.front();
      return;
    }
    std::array<std::int64_t, ExactSum::kNumValues> values{};
    std::transform(numbers.begin(), numbers.end(), values.begin(),
                   [](double number) { return static_cast<std::int64_t>(number); });
    exact_ = ExactSum(values);
    exact_->normalise();
  }

 private:
  double value_ = 0.0;
  std::optional<ExactSum> exact_;
};

}  // namespace redspine
