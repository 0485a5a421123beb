// The sums or maxima of what several ranks gave, element by element, ranks in ascending order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "parallel/group/process_group.h"
#include "parallel/partition.h"

namespace redspine {

/// What every rank of the group gave, by rank: `count` elements each.
template <class T>
using Contributions = std::span<const T* const>;

namespace detail {

inline constexpr std::int64_t kBlock = 128;  // elements that are added up at once

template <class T, class Sum>
[[gnu::always_inline]] inline void reduce_block(T* values, T* result, Contributions<T> of_ranks,
                                                ReduceOp op, Range block) {
  Sum sums[kBlock];
  const std::int64_t count = block.size();
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    const T* from = of_ranks[r] + block.begin;
    if (r == 0) {
      for (std::int64_t i = 0; i < count; ++i) sums[i] = static_cast<Sum>(from[i]);
    } else if (op == ReduceOp::sum) {
      for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<Sum>(from[i]);
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        sums[i] = std::max(sums[i], static_cast<Sum>(from[i]));
      }
    }
  }
  if (result != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) result[block.begin + i] = static_cast<T>(sums[i]);
  }
  for (std::int64_t i = 0; i < count; ++i) values[block.begin + i] = static_cast<T>(sums[i]);
}

}  // namespace detail

/// Writes `count` sums to `values`, which may be one of the contributions, and to `result` unless
/// it is null. `Sum` is the type that is added in. Blocks have a length that the compiler knows, so
/// that sums stay in registers.
template <class T, class Sum>
void reduce_part(T* values, T* result, Contributions<T> of_ranks, ReduceOp op, std::int64_t count) {
  std::int64_t begin = 0;
  for (; begin + detail::kBlock <= count; begin += detail::kBlock) {
    detail::reduce_block<T, Sum>(values, result, of_ranks, op, {begin, begin + detail::kBlock});
  }
  detail::reduce_block<T, Sum>(values, result, of_ranks, op, {begin, count});
}

}  // namespace redspine
