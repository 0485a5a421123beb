// Which elements dropout drops, in one place for every backend: its counters, and what random bits
// mean. Pure functions of their arguments; local.
#pragma once

#include <cmath>
#include <cstdint>

#include "tensor/kernels.h"
#include "tensor/philox.h"

namespace redspine {

/// The constants of one DropoutKey.
struct DropoutRule {
  std::uint64_t key;
  std::uint32_t threshold;  // random bits below it drop
  float kept;               // 1 / (1 - probability)

  explicit DropoutRule(const DropoutKey& dropout)
      : key(dropout.key),
        threshold(static_cast<std::uint32_t>(
            std::ceil(static_cast<double>(dropout.probability) * 4294967296.0))),
        kept(1.0F / (1.0F - dropout.probability)) {}

  /// Whether anything is dropped at all.
  constexpr bool active() const { return threshold > 0; }
  /// What an element with these bits is multiplied by.
  constexpr float factor(std::uint32_t bits) const { return bits < threshold ? 0.0F : kept; }
};

/// The counter of element e of a sample: number e % 4 of {e/4, e/4 >> 32, sample, sample >> 32} is
/// its own.
constexpr PhiloxCounter element_counter(std::int64_t sample, std::int64_t element) {
  const std::int64_t i = element / 4;
  return {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
          static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)};
}

/// The counters of the attention probabilities of one head of one sample. Number key % 4 of
/// {key/4, query, sample, head | sample >> 32 << 16} decides for (query, key); `head` is the global
/// number of the query head, below 2^16, and sample numbers lie below 2^48.
struct ScoreCounters {
  std::int64_t sample;
  std::int64_t head;

  constexpr PhiloxCounter at(std::int64_t query, std::int64_t key) const {
    return {static_cast<std::uint32_t>(key / 4), static_cast<std::uint32_t>(query),
            static_cast<std::uint32_t>(sample),
            static_cast<std::uint32_t>(head | (sample >> 32 << 16))};
  }
};

}  // namespace redspine
