// The masks of dropout on the CPU, many elements at once, for the element-wise kernel and for
// attention. Local; stateless but for the constants of one DropoutKey.
#pragma once

#include <cstdint>

#include "tensor/dropout.h"
#include "tensor/kernels.h"

namespace redspine {

class DropoutMask {
 public:
  explicit DropoutMask(const DropoutKey& dropout) : rule_(dropout) {}

  /// Whether anything is dropped at all.
  bool active() const { return rule_.active(); }

  /// What 4 * num_counters elements are multiplied by: factors[4 i + j] is 0 where number j at the
  /// counter {first[0] + i, first[1], first[2], first[3]} says so, else 1 / (1 - probability).
  /// first[0] + num_counters must not exceed 2^32.
  void fill(float* factors, std::int64_t num_counters, PhiloxCounter first) const;

 private:
  DropoutRule rule_;
};

/// The mask on the attention probabilities of one head of one sample (see ScoreCounters).
class ScoreDropout {
 public:
  ScoreDropout(const DropoutKey& dropout, std::int64_t row, std::int64_t head)
      : mask_(dropout),
        counters_{mask_.active() ? dropout.samples_B.data<std::int64_t>()[row] : 0, head} {}

  bool active() const { return mask_.active(); }

  /// Factors of the keys [first_key, first_key + num_keys), where first_key is a multiple of 4.
  /// There must be room for num_keys rounded up to a multiple of 4.
  void fill(float* factors, std::int64_t query, std::int64_t first_key,
            std::int64_t num_keys) const {
    mask_.fill(factors, (num_keys + 3) / 4, counters_.at(query, first_key));
  }

 private:
  DropoutMask mask_;
  ScoreCounters counters_;
};

}  // namespace redspine
