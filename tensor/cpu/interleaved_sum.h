// Sums and maxima of a row in an order that no instruction set, compiler or alignment enters: as
// many partial sums as the widest vectors have elements, taken in turn. Internal to tensor/cpu;
// pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/cpu/vector.h"

namespace redspine {

inline constexpr std::int64_t kPartials = 16;

/// Partial sum i is that of the elements i, i + 16, i + 32 ...; they meet in pairs: i and i + 8,
/// then i and i + 4, and so on.
class PartialSums {
 public:
  /// Adds `term(i)`, a float, for each i in [0, count).
  template <class Term>
  [[gnu::always_inline]] void add(std::int64_t count, const Term& term) {
    constexpr std::int64_t kVectors = kPartials / kVectorFloats;
    static_assert(kPartials % kVectorFloats == 0);
    Vector sums[kVectors];
    for (std::int64_t v = 0; v < kVectors; ++v) sums[v] = load(&partials_[v * kVectorFloats]);
    std::int64_t begin = 0;
    for (; begin + kPartials <= count; begin += kPartials) {
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < kVectors; ++v) {
        alignas(64) float terms[kVectorFloats];
#pragma omp simd
        for (std::int64_t i = 0; i < kVectorFloats; ++i) {
          terms[i] = term(begin + v * kVectorFloats + i);
        }
        sums[v] += load(terms);
      }
    }
    for (std::int64_t v = 0; v < kVectors; ++v) store(&partials_[v * kVectorFloats], sums[v]);
    for (std::int64_t i = begin; i < count; ++i) partials_[i - begin] += term(i);
  }

  float total() const {
    float sums[kPartials];
    std::copy_n(partials_, kPartials, sums);
    for (std::int64_t half = kPartials / 2; half > 0; half /= 2) {
      for (std::int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
  }

 private:
  alignas(64) float partials_[kPartials] = {};
};

/// The sum of term(i) over [0, count).
template <class Term>
[[gnu::always_inline]] inline float interleaved_sum(std::int64_t count, const Term& term) {
  PartialSums sums;
  sums.add(count, term);
  return sums.total();
}

}  // namespace redspine
