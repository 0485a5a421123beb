#include "model/row_shares.h"

#include <gtest/gtest.h>

namespace redspine::testing {
namespace {

TEST(RowPieces, AreTheEndOfASampleWholeOnesAndTheBeginningOfAnother) {
  const std::vector<RowPiece> pieces = row_pieces({3, 32}, 7);
  ASSERT_EQ(pieces.size(), 3U);
  const auto expect = [](const RowPiece& piece, const RowPiece& expected) {
    EXPECT_EQ(piece.first_row, expected.first_row);
    EXPECT_EQ(piece.first_sample, expected.first_sample);
    EXPECT_EQ(piece.num_samples, expected.num_samples);
    EXPECT_EQ(piece.first_position, expected.first_position);
    EXPECT_EQ(piece.num_positions, expected.num_positions);
  };
  expect(pieces[0], {0, 0, 1, 3, 4});
  expect(pieces[1], {4, 1, 3, 0, 7});
  expect(pieces[2], {25, 4, 1, 0, 4});
}

TEST(RowPieces, AreAllRowsInOrder) {
  for (std::int64_t begin = 0; begin <= 15; ++begin) {
    for (std::int64_t end = begin; end <= 15; ++end) {
      std::int64_t row = begin;
      for (const RowPiece& piece : row_pieces({begin, end}, 5)) {
        EXPECT_EQ(piece.first_row, row - begin);
        EXPECT_EQ(5 * piece.first_sample + piece.first_position, row);
        EXPECT_GT(piece.num_rows(), 0);
        EXPECT_TRUE(piece.num_samples == 1 || piece.num_positions == 5);
        row += piece.num_rows();
      }
      EXPECT_EQ(row, end);
    }
  }
}

TEST(RowShares, AreEvenToARow) {
  for (int rank = 0; rank < 3; ++rank) {
    const RowShares shares(2, 5, {.num_ranks = 3, .rank = rank});
    const std::vector<Range> of_ranks(shares.of_ranks().begin(), shares.of_ranks().end());
    EXPECT_EQ(of_ranks, (std::vector<Range>{{0, 4}, {4, 7}, {7, 10}}));
    EXPECT_EQ(shares.own(), of_ranks[static_cast<std::size_t>(rank)]);
  }
}

// Two samples of 70 rows: blocks of 32, 32 and 6 each.
TEST(RowShares, AreOfWholeBlocksInExactMode) {
  for (int rank = 0; rank < 4; ++rank) {
    const RowShares shares(2, 70, {.num_ranks = 4, .rank = rank, .num_leaves = 8});
    EXPECT_EQ(shares.blocks(),
              (std::vector<Range>{{0, 32}, {32, 64}, {64, 70}, {70, 102}, {102, 134}, {134, 140}}));
    const std::vector<Range> of_ranks(shares.of_ranks().begin(), shares.of_ranks().end());
    EXPECT_EQ(of_ranks, (std::vector<Range>{{0, 64}, {64, 102}, {102, 134}, {134, 140}}));
    EXPECT_EQ(shares.own(), of_ranks[static_cast<std::size_t>(rank)]);
    const Range& own = shares.own_blocks();
    EXPECT_EQ(own, shares.blocks_of_ranks()[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(shares.blocks()[static_cast<std::size_t>(own.begin)].begin, shares.own().begin);
  }
}

TEST(RowShares, MayBeNoneInExactMode) {
  const RowShares shares(1, 20, {.num_ranks = 2, .rank = 1, .num_leaves = 2});
  EXPECT_EQ(shares.own(), (Range{20, 20}));
  EXPECT_EQ(shares.own_blocks().size(), 0);
  EXPECT_TRUE(shares.pieces().empty());
}

}  // namespace
}  // namespace redspine::testing
