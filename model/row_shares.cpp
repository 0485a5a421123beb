#include "model/row_shares.h"

#include <algorithm>

#include "tensor/kernels.h"

namespace redspine {

std::vector<RowPiece> row_pieces(const Range& rows, std::int64_t sequence_length) {
  std::vector<RowPiece> pieces;
  for (std::int64_t row = rows.begin; row < rows.end;) {
    const std::int64_t position = row % sequence_length;
    const std::int64_t num_whole = position == 0 ? (rows.end - row) / sequence_length : 0;
    RowPiece piece{.first_row = row - rows.begin,
                   .first_sample = row / sequence_length,
                   .num_samples = 1,
                   .first_position = position,
                   .num_positions = std::min(sequence_length - position, rows.end - row)};
    if (num_whole > 0) piece.num_samples = num_whole;
    pieces.push_back(piece);
    row += piece.num_rows();
  }
  return pieces;
}

RowShares::RowShares(std::int64_t num_sequences, std::int64_t sequence_length, TensorRank rank) {
  const std::int64_t num_rows = num_sequences * sequence_length;
  if (rank.is_exact()) {
    for (std::int64_t sample = 0; sample < num_rows; sample += sequence_length) {
      for (const Range& block : redspine::pieces(sequence_length, kSummedRows)) {
        blocks_.push_back({sample + block.begin, sample + block.end});
      }
    }
    blocks_of_ranks_ = partition(std::ssize(blocks_), rank.num_ranks);
    for (const Range& blocks : blocks_of_ranks_) {
      const auto begin_of = [&](std::int64_t block) {
        return block == std::ssize(blocks_) ? num_rows
                                            : blocks_[static_cast<std::size_t>(block)].begin;
      };
      rows_.push_back({begin_of(blocks.begin), begin_of(blocks.end)});
    }
    own_blocks_ = blocks_of_ranks_[static_cast<std::size_t>(rank.rank)];
  } else {
    rows_ = partition(num_rows, rank.num_ranks);
  }
  own_ = rows_[static_cast<std::size_t>(rank.rank)];
  pieces_ = row_pieces(own_, sequence_length);
}

}  // namespace redspine
