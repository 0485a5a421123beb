#include "parallel/partition.h"

#include <algorithm>
#include <cassert>

namespace redspine {

Range partition(std::int64_t count, int parts, int index) {
  assert(count >= 0 && parts > 0 && index >= 0 && index < parts);
  const std::int64_t base = count / parts;
  const std::int64_t larger = count % parts;
  const std::int64_t begin = index * base + std::min<std::int64_t>(index, larger);
  return {begin, begin + base + (index < larger ? 1 : 0)};
}

std::vector<Range> partition(std::int64_t count, int parts) {
  std::vector<Range> all;
  all.reserve(static_cast<std::size_t>(parts));
  for (int index = 0; index < parts; ++index) all.push_back(partition(count, parts, index));
  return all;
}

std::vector<Range> shares_within(const Range& range, std::span<const Range> shares) {
  std::vector<Range> within(shares.begin(), shares.end());
  for (Range& share : within) {
    share = {std::clamp(share.begin, range.begin, range.end) - range.begin,
             std::clamp(share.end, range.begin, range.end) - range.begin};
  }
  return within;
}

Range part_of(const Range& range, int parts, int index) {
  const Range part = partition(range.size(), parts, index);
  return {range.begin + part.begin, range.begin + part.end};
}

// A share's part is rounded up by less than an item.
int num_parts_of_shares(std::int64_t count, std::size_t num_shares, std::int64_t max_size) {
  const std::int64_t most = max_size - static_cast<std::int64_t>(num_shares);
  assert(count >= 0 && most > 0);
  return static_cast<int>((count + most - 1) / most);
}

std::vector<Range> pieces(std::int64_t count, std::int64_t max_size) {
  assert(count >= 0 && max_size > 0);
  std::vector<Range> all;
  for (std::int64_t begin = 0; begin < count; begin += max_size) {
    all.push_back({begin, std::min(begin + max_size, count)});
  }
  return all;
}

namespace {

Range kv_heads_read_by(const Range& query_heads, std::int64_t queries_per_kv) {
  return {query_heads.begin / queries_per_kv, (query_heads.end - 1) / queries_per_kv + 1};
}

}  // namespace

HeadPartition partition_heads(std::int64_t num_heads, std::int64_t num_kv_heads, int parts,
                              int index) {
  assert(num_heads % parts == 0 && num_heads % num_kv_heads == 0);
  const std::int64_t queries_per_kv = num_heads / num_kv_heads;
  HeadPartition heads;
  heads.query_heads = partition(num_heads, parts, index);
  heads.kv_heads = kv_heads_read_by(heads.query_heads, queries_per_kv);
  heads.owned_kv_heads = heads.kv_heads;
  if (index > 0) {
    const Range before = kv_heads_read_by(partition(num_heads, parts, index - 1), queries_per_kv);
    heads.owned_kv_heads.begin = std::max(heads.kv_heads.begin, before.end);
  }
  return heads;
}

}  // namespace redspine
