// Blending by weight: which entry of `data.train` each sample of a run comes from.
//
// The sequence is a pure function of the weights: entry e has had within one sample of its exact
// share after any number of samples. It is Tijdeman's solution of the chairman assignment problem
// (Discrete Mathematics 32, 1980): of the entries that are due, the one whose deadline is nearest;
// with k entries no count ever differs by more than 1 - 1/(2k-2) from its share. All arithmetic is
// on integers, in O(k) memory. The sequence repeats after at most kNumParts samples, so that seek()
// takes less than that many steps whatever the distance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace redspine {

class Blend {
 public:
  /// Weights are rounded to whole parts of this many, a number that makes decimals of four digits
  /// and n-ths up to ten exact.
  static constexpr std::int64_t kNumParts = 2'520'000;

  struct Pick {
    int entry;
    std::int64_t index;  // how many times the entry was picked before
  };

  /// Starts at sample 0. The weights are above 0, relative to their sum; one below half a part is
  /// a ConfigError ("data.train[2].weight").
  explicit Blend(std::span<const double> weights);

  /// The pick for the present sample; steps to the next one.
  Pick next();
  /// Makes `sample` the present one.
  void seek(std::int64_t sample);
  std::int64_t position() const { return position_; }

 private:
  std::vector<std::int64_t> parts_;   // [entry] share of num_parts_
  std::vector<std::int64_t> counts_;  // [entry] picks before position_
  std::vector<std::int64_t> debts_;   // [entry] position_ * parts - counts * num_parts_
  std::int64_t num_parts_ = 0;        // the period
  std::int64_t position_ = 0;
};

}  // namespace redspine
