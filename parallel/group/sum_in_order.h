// The sums of summands that lie apart, element by element, by a stack's program
// (parallel/sum_tree.h). Internal to parallel; pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel/sum_tree.h"

namespace redspine {
namespace detail {

inline constexpr std::int64_t kSumBlock = 128;  // elements that are added up at once

[[gnu::always_inline]] inline void sum_block_in_order(float* values, float* result,
                                                      std::span<const float* const> summands,
                                                      std::span<const int> num_merges,
                                                      std::array<float, kSumBlock>* stack,
                                                      Range block) {
  const std::int64_t count = block.size();
  std::size_t height = 0;
  for (std::size_t s = 0; s < summands.size(); ++s) {
    const float* from = summands[s] + block.begin;
    std::copy_n(from, count, stack[height++].data());
    for (int merge = 0; merge < num_merges[s]; ++merge) {
      --height;
      float* left = stack[height - 1].data();
      const float* right = stack[height].data();
      for (std::int64_t i = 0; i < count; ++i) left[i] += right[i];
    }
  }
  if (result != nullptr) std::copy_n(stack[0].data(), count, result + block.begin);
  std::copy_n(stack[0].data(), count, values + block.begin);
}

}  // namespace detail

/// Writes `count` sums to `values`, which may be one of the summands, and to `result` unless it is
/// null.
inline void sum_in_order(float* values, float* result, std::span<const float* const> summands,
                         const SumOrder& order, std::int64_t count) {
  std::vector<std::array<float, detail::kSumBlock>> stack(static_cast<std::size_t>(order.depth));
  std::int64_t begin = 0;
  for (; begin + detail::kSumBlock <= count; begin += detail::kSumBlock) {
    detail::sum_block_in_order(values, result, summands, order.num_merges, stack.data(),
                               {begin, begin + detail::kSumBlock});
  }
  detail::sum_block_in_order(values, result, summands, order.num_merges, stack.data(),
                             {begin, count});
}

}  // namespace redspine
