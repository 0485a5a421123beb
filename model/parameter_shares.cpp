#include "model/parameter_shares.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace redspine {
namespace {

// The beginning of a row near `ideal`, or the end of the bucket. The gap behind a parameter belongs
// to it.
std::int64_t nearest_cut(std::int64_t ideal, const Range& bucket,
                         std::span<const RowsInBuffer> parameters) {
  const auto next = std::upper_bound(
      parameters.begin(), parameters.end(), ideal,
      [](std::int64_t element, const RowsInBuffer& rows) { return element < rows.offset; });
  if (next == parameters.begin()) return bucket.begin;
  const RowsInBuffer& in = *std::prev(next);
  const std::int64_t end = next == parameters.end() ? bucket.end : next->offset;
  if (in.row_size == 0) return end;
  const std::int64_t row = (ideal - in.offset + in.row_size / 2) / in.row_size;
  return row < in.num_rows ? in.offset + row * in.row_size : end;
}

}  // namespace

std::vector<Range> share_out(const Range& bucket, std::span<const RowsInBuffer> parameters,
                             int num_ranks) {
  std::vector<Range> shares;
  std::int64_t begin = bucket.begin;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::int64_t ideal = bucket.begin + partition(bucket.size(), num_ranks, rank).end;
    const std::int64_t end =
        rank + 1 == num_ranks ? bucket.end : nearest_cut(ideal, bucket, parameters);
    shares.push_back({begin, std::max(begin, end)});
    begin = shares.back().end;
  }
  return shares;
}

ParameterShares::ParameterShares(std::vector<std::vector<Range>> buckets, int rank)
    : buckets_(std::move(buckets)), rank_(rank) {
  for (const std::vector<Range>& shares : buckets_) {
    const Range& own = shares[static_cast<std::size_t>(rank_)];
    if (own.size() == 0) continue;
    if (!runs_.empty() && runs_.back().elements.end == own.begin) {
      runs_.back().elements.end = own.end;
    } else {
      runs_.push_back({own, num_moments_});
    }
    num_moments_ += own.size();
  }
}

std::vector<std::int64_t> ParameterShares::cuts_in(const Range& elements) const {
  std::vector<std::int64_t> cuts;
  for (const std::vector<Range>& shares : buckets_) {
    for (const Range& share : shares) {
      if (share.begin <= elements.begin || share.begin >= elements.end) continue;
      if (cuts.empty() || share.begin > cuts.back()) cuts.push_back(share.begin);
    }
  }
  return cuts;
}

std::int64_t ParameterShares::moment_of(std::int64_t element) const {
  const auto run = std::find_if(runs_.begin(), runs_.end(), [element](const Run& candidate) {
    return element < candidate.elements.end;
  });
  assert(run != runs_.end() && element >= run->elements.begin);
  return run->moments_begin + element - run->elements.begin;
}

Range ParameterShares::own_part(const Range& elements) const {
  for (const Run& run : runs_) {
    const Range part{std::max(elements.begin, run.elements.begin),
                     std::min(elements.end, run.elements.end)};
    if (part.size() > 0) return part;
  }
  return {elements.begin, elements.begin};
}

}  // namespace redspine
