// Sequence parallelism: which of a micro-batch's N = B*T rows each tensor rank has of what all of
// them would else have alike, the residual stream with its norms and dropout. Local.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/parameters.h"
#include "parallel/partition.h"
#include "tensor/tensor.h"

namespace redspine {

/// Neighbouring rows of a rank: whole samples, or positions of one.
struct RowPiece {
  std::int64_t first_row;  // among the rank's rows
  std::int64_t first_sample;
  std::int64_t num_samples;
  std::int64_t first_position;
  std::int64_t num_positions;  // of each of the samples

  std::int64_t num_rows() const { return num_samples * num_positions; }
};

/// Pieces of rows [rows.begin, rows.end) of samples of `sequence_length` rows.
std::vector<RowPiece> row_pieces(const Range& rows, std::int64_t sequence_length);

class RowShares {
 public:
  /// Shares are even to a row. In exact mode they end where a block of rows does over which kernels
  /// add up, so that one rank has it whole.
  RowShares(std::int64_t num_sequences, std::int64_t sequence_length, TensorRank rank);

  /// [tensor rank]: of the N rows.
  std::span<const Range> of_ranks() const { return rows_; }
  const Range& own() const { return own_; }
  /// Of this rank's rows.
  const std::vector<RowPiece>& pieces() const { return pieces_; }

  /// Exact mode: [block] of the N rows, and [tensor rank] of these blocks.
  const std::vector<Range>& blocks() const { return blocks_; }
  std::span<const Range> blocks_of_ranks() const { return blocks_of_ranks_; }
  const Range& own_blocks() const { return own_blocks_; }

 private:
  std::vector<Range> blocks_;
  std::vector<Range> blocks_of_ranks_;
  std::vector<Range> rows_;
  Range own_;
  Range own_blocks_;
  std::vector<RowPiece> pieces_;
};

/// What a model with sequence parallelism has for all of its layers.
struct RowScratch {
  RowShares shares;
  Tensor block_sums;  // exact mode: [block, 2, D], for the gradients of a norm's weight and bias
};

}  // namespace redspine
