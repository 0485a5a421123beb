#include "tensor/cpu/gemm.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "tensor/cpu/aligned_buffer.h"
#include "tensor/cpu/gemm_tile.h"

namespace redspine {
namespace {

// A packed block of A (kMaxRows x kMaxInner) stays in the level-2 cache of a core with a panel of
// B; packed B (kMaxCols x kMaxInner) in the level-3 cache.
constexpr std::int64_t kMaxInner = 512;
constexpr std::int64_t kMaxRows = 192;
constexpr std::int64_t kMaxCols = 768;
static_assert(kMaxRows % kTileRows == 0 && kMaxCols % kTileCols == 0);

// A thread's packed blocks. Kept from product to product: new memory would cost a page fault for
// every page.
struct PackedBlocks {
  AlignedBuffer a{kMaxRows * kMaxInner};
  AlignedBuffer b{kMaxCols * kMaxInner};
};

struct Span {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size() const { return end - begin; }
};

std::int64_t round_up(std::int64_t x, std::int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

// Piece `index` of [0, count) cut into `num_pieces` of nearly equal multiples of `unit`.
Span piece(std::int64_t count, std::int64_t num_pieces, std::int64_t index, std::int64_t unit) {
  const std::int64_t num_units = (count + unit - 1) / unit;
  return {std::min(num_units * index / num_pieces * unit, count),
          std::min(num_units * (index + 1) / num_pieces * unit, count)};
}

// The length of blocks of at most `max`, as even as multiples of `unit` allow.
std::int64_t block_length(std::int64_t count, std::int64_t max, std::int64_t unit) {
  const std::int64_t num_blocks = std::max<std::int64_t>((count + max - 1) / max, 1);
  return std::min(round_up((count + num_blocks - 1) / num_blocks, unit), max);
}

// Panels of `width` side by side: panel p begins at to + p * width * inner.size().
template <int width>
void pack_block(float* to, const GemmOperand& from, Span span, Span inner) {
  const auto panel_of = [&](std::int64_t i) { return to + (i - span.begin) * inner.size(); };
  const auto element = [&](std::int64_t i, std::int64_t k) {
    return from.data + i * from.stride + k * from.inner_stride;
  };
  const std::int64_t whole_end = span.begin + span.size() / width * width;
  if (from.stride == 1) {  // along the rows of the operand, which the processor fetches ahead
    for (std::int64_t k = inner.begin; k < inner.end; ++k) {
      for (std::int64_t i = span.begin; i < whole_end; i += width) {
        std::memcpy(panel_of(i) + (k - inner.begin) * width, element(i, k), width * sizeof(float));
      }
    }
  } else {
    for (std::int64_t i = span.begin; i < whole_end; i += width) {
      pack_turned<width>(panel_of(i), {element(i, inner.begin), from.stride, 1}, inner.size());
    }
  }
  if (whole_end < span.end) {
    pack_part<width>(panel_of(whole_end),
                     {element(whole_end, inner.begin), from.stride, from.inner_stride},
                     span.end - whole_end, inner.size());
  }
}

// A block of the inner dim, and what becomes of its product: sums that lie somewhere are added to
// it, and it is stored. Places are those of a stack; the first of them is the output.
struct InnerBlock {
  Span inner;
  int place;        // of the sum that the block belongs to
  bool adds_place;  // what lies there already; not of the first block of a sum
  int num_merges;   // so many sums beneath, one after another, the result taking the lowest place
};

std::vector<InnerBlock> inner_blocks(const Gemm& gemm) {
  std::vector<InnerBlock> blocks;
  int place = 0;
  bool adds_place = gemm.update == Update::accumulate;
  const auto add_part = [&](Span part) {
    const std::int64_t length = block_length(part.size(), kMaxInner, 1);
    for (std::int64_t k = part.begin; k < part.end; k += length) {
      blocks.push_back({{k, std::min(k + length, part.end)}, place, adds_place, 0});
      adds_place = true;
    }
  };
  if (gemm.order == nullptr) {
    add_part({0, gemm.k});
    return blocks;
  }
  for (const InnerPart& part : gemm.order->parts) {
    add_part({part.begin, part.end});
    if (!part.ends_leaf) continue;
    blocks.back().num_merges = part.num_merges;
    place += 1 - part.num_merges;
    adds_place = false;
  }
  return blocks;
}

// Where the sums of a thread's part of the output lie. Those that do not stay go to memory of the
// thread, which has room for a block of columns.
class Places {
 public:
  Places(const Gemm& gemm, Span rows)
      : gemm_(gemm), first_row_(rows.begin), num_rows_(rows.size()) {
    if (gemm.order == nullptr) return;
    const auto num_inner_sums =
        static_cast<std::size_t>(std::max(gemm.order->depth - gemm.order->num_sums, 0));
    thread_local std::vector<AlignedBuffer> buffers;
    thread_local std::int64_t num_buffer_rows = 0;
    if (num_rows_ > num_buffer_rows) {
      buffers.clear();
      num_buffer_rows = num_rows_;
    }
    while (buffers.size() < num_inner_sums) buffers.emplace_back(num_buffer_rows * kMaxCols);
    buffers_ = buffers.data();
  }

  struct Place {
    float* tile;
    std::int64_t stride;
  };
  // A tile of the sum at `place`; `first_col` is that of the present block of columns.
  Place at(int place, std::int64_t row, std::int64_t col, std::int64_t first_col) const {
    const int num_sums = gemm_.order == nullptr ? 1 : gemm_.order->num_sums;
    if (place < num_sums) {
      return {gemm_.out + (place * gemm_.m + row) * gemm_.out_stride + col, gemm_.out_stride};
    }
    return {buffers_[place - num_sums].data() + (row - first_row_) * kMaxCols + col - first_col,
            kMaxCols};
  }

 private:
  const Gemm& gemm_;
  std::int64_t first_row_;
  std::int64_t num_rows_;
  AlignedBuffer* buffers_ = nullptr;
};

// What a tile's sum becomes: a bias and the sums of other blocks are added, and it is stored.
struct TileWork {
  const InnerBlock& block;
  const Places& places;
  const float* bias;  // of the tile's columns, or null
  std::int64_t first_col;

  int first_added() const { return block.place - (block.adds_place ? 0 : 1); }
  int last_added() const { return block.place - block.num_merges; }
  Places::Place at(int place, const GemmTile& tile) const {
    return places.at(place, tile.row, tile.col, first_col);
  }
};

[[gnu::always_inline]] inline void finish_whole(TileSum sum, const TileWork& work,
                                                const GemmTile& tile) {
  if (work.bias != nullptr) sum.add_row(work.bias);
  for (int p = work.first_added(); p >= work.last_added(); --p) {
    const auto [from, stride] = work.at(p, tile);
    sum.add(from, stride);
  }
  const auto [to, stride] = work.at(work.last_added(), tile);
  sum.store(to, stride);
}

// The same, element by element, where the tile goes beyond the output.
void finish_part(const float* sum, const TileWork& work, const GemmTile& tile) {
  const auto [to, to_stride] = work.at(work.last_added(), tile);
  for (std::int64_t r = 0; r < tile.num_rows; ++r) {
    for (std::int64_t c = 0; c < tile.num_cols; ++c) {
      float value = sum[r * kTileCols + c];
      if (work.bias != nullptr) value += work.bias[c];
      for (int p = work.first_added(); p >= work.last_added(); --p) {
        const auto [from, stride] = work.at(p, tile);
        value += from[r * stride + c];
      }
      to[r * to_stride + c] = value;
    }
  }
}

// The tiles of one block of the output, for one block of the inner dim.
void multiply_block(const Gemm& gemm, const PackedBlocks& packed, const Places& places, Span rows,
                    Span cols, const InnerBlock& block) {
  const Span inner = block.inner;
  const bool is_last = inner.end == gemm.k;
  for (std::int64_t col = cols.begin; col < cols.end; col += kTileCols) {
    const float* b = packed.b.data() + (col - cols.begin) * inner.size();
    const TileWork work{
        .block = block,
        .places = places,
        .bias = inner.begin == 0 && gemm.bias != nullptr ? gemm.bias + col : nullptr,
        .first_col = cols.begin};
    for (std::int64_t row = rows.begin; row < rows.end; row += kTileRows) {
      const float* a = packed.a.data() + (row - rows.begin) * inner.size();
      const GemmTile tile{.row = row,
                          .col = col,
                          .num_rows = std::min<std::int64_t>(kTileRows, rows.end - row),
                          .num_cols = std::min<std::int64_t>(kTileCols, cols.end - col)};
      const TileSum sum(a, b, inner.size());
      if (tile.num_rows == kTileRows && tile.num_cols == kTileCols) {
        finish_whole(sum, work, tile);
      } else {
        alignas(64) float all[kTileRows * kTileCols];
        sum.store(all, kTileCols);
        finish_part(all, work, tile);
      }
      if (is_last && gemm.epilogue != nullptr) gemm.epilogue->finish(tile);
    }
  }
}

// One thread's rectangle of the output.
void multiply_part(const Gemm& gemm, std::span<const InnerBlock> blocks, Span all_rows,
                   Span all_cols) {
  thread_local const PackedBlocks packed;
  const Places places(gemm, all_rows);
  const std::int64_t num_rows = block_length(all_rows.size(), kMaxRows, kTileRows);
  const std::int64_t num_cols = block_length(all_cols.size(), kMaxCols, kTileCols);
  for (std::int64_t col = all_cols.begin; col < all_cols.end; col += num_cols) {
    const Span cols{col, std::min(col + num_cols, all_cols.end)};
    for (const InnerBlock& block : blocks) {
      pack_block<kTileCols>(packed.b.data(), gemm.b, cols, block.inner);
      for (std::int64_t row = all_rows.begin; row < all_rows.end; row += num_rows) {
        const Span rows{row, std::min(row + num_rows, all_rows.end)};
        pack_block<kTileRows>(packed.a.data(), gemm.a, rows, block.inner);
        multiply_block(gemm, packed, places, rows, cols, block);
      }
    }
  }
}

// A product without inner elements: zeros, or the bias.
void fill_empty(const Gemm& gemm) {
  for (std::int64_t r = 0; r < gemm.m; ++r) {
    float* row = gemm.out + r * gemm.out_stride;
    for (std::int64_t c = 0; c < gemm.n; ++c) {
      const float value = gemm.bias == nullptr ? 0.0F : gemm.bias[c];
      row[c] = gemm.update == Update::accumulate ? row[c] + value : value;
    }
  }
  if (gemm.epilogue != nullptr && gemm.m > 0 && gemm.n > 0) {
    gemm.epilogue->finish({.row = 0, .col = 0, .num_rows = gemm.m, .num_cols = gemm.n});
  }
}

// How many pieces the rows are cut into for `num_threads`, the columns being cut into the rest:
// what gives the pieces the least circumference, since that is what a thread packs.
std::int64_t num_row_pieces(const Gemm& gemm, std::int64_t num_threads) {
  std::int64_t best = 1;
  std::int64_t least = -1;
  for (std::int64_t pieces = 1; pieces <= num_threads; ++pieces) {
    if (num_threads % pieces != 0) continue;
    const std::int64_t rows = round_up((gemm.m + pieces - 1) / pieces, kTileRows);
    const std::int64_t col_pieces = num_threads / pieces;
    const std::int64_t cols = round_up((gemm.n + col_pieces - 1) / col_pieces, kTileCols);
    // The product first: a piece must not be longer than its share.
    const std::int64_t cost = rows * cols * 64 + (rows + cols) * 64;
    if (least < 0 || cost < least) {
      least = cost;
      best = pieces;
    }
  }
  return best;
}

// Below this many multiplications a team costs more than it saves.
constexpr std::int64_t kMinParallelWork = std::int64_t{64} * 64 * 64;

}  // namespace

void multiply(const Gemm& gemm) {
  if (gemm.m == 0 || gemm.n == 0) return;
  if (gemm.k == 0) {
    fill_empty(gemm);
    return;
  }
  const std::vector<InnerBlock> blocks = inner_blocks(gemm);
#pragma omp parallel if (gemm.m * gemm.n * gemm.k > kMinParallelWork)
  {
    const std::int64_t num_threads = omp_get_num_threads();
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t row_pieces = num_row_pieces(gemm, num_threads);
    const std::int64_t col_pieces = num_threads / row_pieces;
    multiply_part(gemm, blocks, piece(gemm.m, row_pieces, thread / col_pieces, kTileRows),
                  piece(gemm.n, col_pieces, thread % col_pieces, kTileCols));
  }
}

}  // namespace redspine
