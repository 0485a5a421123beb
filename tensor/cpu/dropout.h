// The masks of dropout on the CPU, in one place for the element-wise kernel and for attention.
// Local; stateless but for the constants of one DropoutKey.
#pragma once

#include <cstdint>

#include "tensor/kernels.h"
#include "tensor/philox.h"

namespace redspine {

class DropoutMask {
 public:
  explicit DropoutMask(const DropoutKey& dropout);

  /// Whether anything is dropped at all.
  bool active() const { return threshold_ > 0; }

  /// What 4 * num_counters elements are multiplied by: factors[4 i + j] is 0 where number j at the
  /// counter {first[0] + i, first[1], first[2], first[3]} says so, else 1 / (1 - probability).
  /// first[0] + num_counters must not exceed 2^32.
  void fill(float* factors, std::int64_t num_counters, PhiloxCounter first) const;

 private:
  std::uint64_t key_;
  std::uint32_t threshold_;  // random bits below it drop
  float kept_;
};

/// The counter of element e of a sample: number e % 4 of {e/4, e/4 >> 32, sample, sample >> 32} is
/// its own.
inline PhiloxCounter element_counter(std::int64_t sample, std::int64_t element) {
  const std::int64_t i = element / 4;
  return {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
          static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)};
}

/// The mask on the attention probabilities of one head of one sample. Number key % 4 of
/// {key/4, query, sample, head | sample >> 32 << 16} decides for (query, key); `head` is the global
/// number of the query head, below 2^16, and sample numbers lie below 2^48.
class ScoreDropout {
 public:
  ScoreDropout(const DropoutKey& dropout, std::int64_t row, std::int64_t head)
      : mask_(dropout),
        sample_(mask_.active() ? dropout.samples_B.data<std::int64_t>()[row] : 0),
        head_(head) {}

  bool active() const { return mask_.active(); }

  /// Factors of the keys [first_key, first_key + num_keys), where first_key is a multiple of 4.
  /// There must be room for num_keys rounded up to a multiple of 4.
  void fill(float* factors, std::int64_t query, std::int64_t first_key,
            std::int64_t num_keys) const {
    mask_.fill(factors, (num_keys + 3) / 4,
               {static_cast<std::uint32_t>(first_key / 4), static_cast<std::uint32_t>(query),
                static_cast<std::uint32_t>(sample_),
                static_cast<std::uint32_t>(head_ | (sample_ >> 32 << 16))});
  }

 private:
  DropoutMask mask_;
  std::int64_t sample_;
  std::int64_t head_;
};

}  // namespace redspine
