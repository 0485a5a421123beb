// How one dim of a tensor is split over the ranks of an axis. Pure arithmetic, local.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace redspine {

/// The half-open range [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Part `index` of `count` items in `parts` contiguous parts whose sizes differ by at most one, the
/// larger ones first. Works for any count: 257 vocabulary rows over 4 ranks give 65, 64, 64, 64, so
/// no padding rows exist anywhere.
Range partition(std::int64_t count, int parts, int index);
/// All of these parts, [index].
std::vector<Range> partition(std::int64_t count, int parts);
/// What shares of some items have of a range of them, from its first one on.
std::vector<Range> shares_within(const Range& range, std::span<const Range> shares);
/// Part `index` of a range that is split in this way.
Range part_of(const Range& range, int parts, int index);

/// Into how many parts, by part_of(), each of `num_shares` shares of `count` items in all has to be
/// split, so that a part of every share together are `max_size` items at most. `max_size` is more
/// than `num_shares`.
int num_parts_of_shares(std::int64_t count, std::size_t num_shares, std::int64_t max_size);

/// `count` items in contiguous pieces of `max_size` each, the last one smaller where it must be.
/// None for no items.
std::vector<Range> pieces(std::int64_t count, std::int64_t max_size);

/// The heads of one tensor rank. Query heads are split evenly (`parts` divides them). A rank holds
/// every key/value head that its query heads read, so neighbours can hold the same one; its owner
/// is the lowest of them, and the owner alone counts it in norms and stores it.
struct HeadPartition {
  Range query_heads;
  Range kv_heads;
  Range owned_kv_heads;
};

HeadPartition partition_heads(std::int64_t num_heads, std::int64_t num_kv_heads, int parts,
                              int index);

}  // namespace redspine
