// Who updates what: with a sharded optimizer (ZeRO-1: Rajbhandari et al., arXiv 1910.02054) each
// data rank has the moments of a share of every bucket. Shares are contiguous in the flat buffers
// and are cut between rows, a vector counting as one, so that what is computed of a row is one
// rank's. Pure arithmetic, local.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/partition.h"

namespace redspine {

/// Where the rows of a parameter begin in the flat buffers, and how long they are.
struct RowsInBuffer {
  std::int64_t offset;
  std::int64_t num_rows;
  std::int64_t row_size;
};

/// A bucket, [rank] as even shares as its rows allow. `parameters` ascend.
std::vector<Range> share_out(const Range& bucket, std::span<const RowsInBuffer> parameters,
                             int num_ranks);

class ParameterShares {
 public:
  /// [bucket][rank]: shares of the flat buffers, which the buckets fill in order.
  ParameterShares(std::vector<std::vector<Range>> buckets, int rank);

  /// Whether ranks have shares at all.
  bool are_apart() const { return !buckets_.empty() && buckets_.front().size() > 1; }
  std::size_t num_buckets() const { return buckets_.size(); }
  /// [rank], of a bucket.
  const std::vector<Range>& of_bucket(std::size_t bucket) const { return buckets_[bucket]; }
  /// What this rank updates of some neighbouring elements of a bucket.
  Range own_part(const Range& elements) const;
  /// Where among some elements the share of another rank than before begins.
  std::vector<std::int64_t> cuts_in(const Range& elements) const;

  /// Moments lie in the order of the elements they belong to, this rank's alone. What lies side by
  /// side in both is one run.
  struct Run {
    Range elements;
    std::int64_t moments_begin;
  };
  const std::vector<Run>& runs() const { return runs_; }
  /// Where the moment of one of these elements lies.
  std::int64_t moment_of(std::int64_t element) const;
  /// The number of a moment's elements on this rank.
  std::int64_t num_moments() const { return num_moments_; }

 private:
  std::vector<std::vector<Range>> buckets_;
  int rank_;
  std::vector<Run> runs_;
  std::int64_t num_moments_ = 0;
};

}  // namespace redspine
