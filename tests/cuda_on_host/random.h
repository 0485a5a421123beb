// A small generator for the orders that the stand-in chooses (SplitMix64; Steele et al., 2014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tensor/philox.h"

namespace on_host {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(redspine::mix64(seed)) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    return redspine::mix64(state_);
  }
  /// Below `count`, which is at least 1 and at most 2^32. A product is far cheaper than a
  /// remainder.
  std::uint64_t below(std::uint64_t count) { return (next() >> 32) * count >> 32; }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace on_host
