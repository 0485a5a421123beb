// The digest of elements whose indices are evenly spaced, in vectors as wide as the machine's:
// 64-bit lanes that hold two elements each. Internal to tensor/cpu; local.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "tensor/digest.h"

namespace redspine {

#ifdef __AVX512F__
inline constexpr int kDigestLanes = 8;
#else
inline constexpr int kDigestLanes = 4;
#endif
typedef std::uint64_t DigestVector  // NOLINT
    __attribute__((vector_size(kDigestLanes * sizeof(std::uint64_t))));
typedef std::uint32_t DigestValues  // NOLINT
    __attribute__((vector_size(kDigestLanes * sizeof(std::uint64_t))));

/// The products of the low halves of the lanes; their high halves may hold anything.
[[gnu::always_inline]] inline DigestVector multiply_low_halves(DigestVector a, DigestVector b) {
#ifdef __AVX512F__
  // Of all lanes; without a mask, GCC 12 warns of its own header.
  return reinterpret_cast<DigestVector>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#else
  return reinterpret_cast<DigestVector>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#endif
}

class DigestRun {
 public:
  /// What is given to add() that does not fill a vector is computed one by one.
  static constexpr std::int64_t kElementsAtOnce = std::int64_t{2} * kDigestLanes;

  /// Of elements with the indices first, first + step, ...
  [[gnu::always_inline]] DigestRun(const DigestKey& key, std::int64_t first, std::int64_t step = 1)
      : step_(kDigestStep * static_cast<std::uint64_t>(step)), mask_(key.mask) {
    DigestVector places{};
    for (unsigned lane = 0; lane < kDigestLanes; ++lane)
      places[lane] = std::uint64_t{2} * lane * step_;
    counters_ = places + digest_counter(key, first);
  }

  /// The next `count` elements, a multiple of kElementsAtOnce in all calls but the last.
  [[gnu::always_inline]] void add(const float* values, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + kElementsAtOnce <= count; i += kElementsAtOnce) {
      DigestValues bits;
      std::memcpy(&bits, values + i, sizeof(bits));
      const auto pairs = reinterpret_cast<DigestVector>((bits ^ mask_) * kDigestSpread);
      add(pairs, counters_);
      add(pairs >> 32, counters_ + step_);
      counters_ += static_cast<std::uint64_t>(kElementsAtOnce) * step_;
    }
    std::uint64_t counter = counters_[0];
    for (; i < count; ++i) {
      rest_ += digest_of_element(std::bit_cast<std::uint32_t>(values[i]), counter, mask_);
      counter += step_;
    }
  }

  Digest sum() const {
    Digest digest = rest_;
    for (int lane = 0; lane < kDigestLanes; ++lane) digest += {low_[lane], high_[lane]};
    return digest;
  }

 private:
  // digest_of_element() of the low halves of `values`.
  [[gnu::always_inline]] void add(DigestVector values, DigestVector counters) {
    const DigestVector weights = multiply_low_halves(counters, counters >> 32) ^ counters;
    low_ += multiply_low_halves(values, weights);
    high_ += multiply_low_halves(values, weights >> 32);
  }

  std::uint64_t step_;
  std::uint32_t mask_;
  DigestVector counters_;
  DigestVector low_{};
  DigestVector high_{};
  Digest rest_;
};

}  // namespace redspine
