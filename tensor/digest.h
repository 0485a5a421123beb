// The digest of fp32 tensors: 128 bits in which every bit of every element counts, wherever the
// element lies. It is two sums modulo 2^64 of what each element gives by its bits, its tensor's
// name and its index in the whole tensor; integer sums are the same in any order, so that no
// layout, no number of threads, no vector width and no compiler enters. Digests of parts add up to
// that of the whole. Plain values; local.
//
// An element with the bits x and the index i gives (x ^ mask) * spread mod 2^32, times the low and
// the high half of w(i): a multilinear hash (Carter and Wegman, 1979) whose weights w are computed,
// the product of the halves of a Weyl sequence. Products are of 32 bits by 32, which AVX2 has. A
// change of one element changes the digest; of other changes, about one in 2^62 does not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/view.h"

namespace redspine {

struct Digest {
  std::uint64_t low = 0;   // the sum with the low halves
  std::uint64_t high = 0;  // that with the high halves

  constexpr Digest& operator+=(const Digest& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
  friend constexpr Digest operator+(Digest a, const Digest& b) { return a += b; }
  friend constexpr Digest operator*(std::uint64_t factor, const Digest& digest) {
    return {factor * digest.low, factor * digest.high};
  }
  constexpr bool operator==(const Digest&) const = default;

  /// In 32 hexadecimal digits, and back; nothing for any other text.
  std::string text() const;
  static std::optional<Digest> parse(std::string_view text);
};

/// What makes the same elements count otherwise in another tensor.
struct DigestKey {
  std::uint64_t start = 0;
  std::uint32_t mask = 0;
};
DigestKey digest_key(std::string_view tensor, const Shape& shape);

/// From an element's place in the Weyl sequence to the next one's; odd, so that all 2^64 differ.
inline constexpr std::uint64_t kDigestStep = 0x9E3779B97F4A7C15u;

/// The place of the element with `index`; of a tensor of any size.
constexpr std::uint64_t digest_counter(const DigestKey& key, std::int64_t index) {
  return key.start + kDigestStep * static_cast<std::uint64_t>(index);
}

/// Brings a change of the lowest bit to the highest ones; odd, so that no two values become equal.
inline constexpr std::uint32_t kDigestSpread = 0x9E3779B1u;

/// The summand of one element.
constexpr Digest digest_of_element(std::uint32_t bits, std::uint64_t counter, std::uint32_t mask) {
  constexpr std::uint64_t kLowHalf = 0xFFFFFFFFu;
  const std::uint64_t weights = ((counter & kLowHalf) * (counter >> 32)) ^ counter;
  const std::uint32_t value = (bits ^ mask) * kDigestSpread;
  return {value * (weights & kLowHalf), value * (weights >> 32)};
}

/// Where a stretch of a tensor lies in the whole of it: its element e has the index
/// first + e / columns * row_stride + e % columns. All columns of some rows: columns = row_stride.
struct DigestPlace {
  DigestKey key;
  std::int64_t first = 0;
  std::int64_t columns = 1;
  std::int64_t row_stride = 1;
};

/// Of its element e.
constexpr std::int64_t index_of(const DigestPlace& place, std::int64_t e) {
  if (place.columns == place.row_stride) return place.first + e;
  return place.first + e / place.columns * place.row_stride + e % place.columns;
}

/// Calls run(begin, end, index) for the stretches of elements [begin, end) whose indices ascend by
/// one from `index`.
template <class Run>
constexpr void for_each_run(const DigestPlace& place, std::int64_t begin, std::int64_t end,
                            const Run& run) {
  if (place.columns == place.row_stride) {
    run(begin, end, index_of(place, begin));
    return;
  }
  while (begin < end) {
    const std::int64_t row_end = (begin / place.columns + 1) * place.columns;
    const std::int64_t run_end = row_end < end ? row_end : end;
    run(begin, run_end, index_of(place, begin));
    begin = run_end;
  }
}

/// Of values in host memory: those with the indices first, first + step, ...
Digest digest_of(std::span<const float> values, const DigestKey& key, std::int64_t first,
                 std::int64_t step = 1);
/// Of a stretch in host memory.
Digest digest_of(std::span<const float> values, const DigestPlace& place);

}  // namespace redspine
