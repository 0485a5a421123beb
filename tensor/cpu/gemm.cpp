#include "tensor/cpu/gemm.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

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

// The tiles of one block of the output, for one block of the inner dim.
void multiply_block(const Gemm& gemm, const PackedBlocks& packed, Span rows, Span cols,
                    Span inner) {
  const bool is_first = inner.begin == 0;
  const bool is_last = inner.end == gemm.k;
  const Update update = is_first ? gemm.update : Update::accumulate;
  for (std::int64_t col = cols.begin; col < cols.end; col += kTileCols) {
    const float* b = packed.b.data() + (col - cols.begin) * inner.size();
    const float* bias = is_first && gemm.bias != nullptr ? gemm.bias + col : nullptr;
    for (std::int64_t row = rows.begin; row < rows.end; row += kTileRows) {
      const float* a = packed.a.data() + (row - rows.begin) * inner.size();
      const GemmTile tile{.row = row,
                          .col = col,
                          .num_rows = std::min<std::int64_t>(kTileRows, rows.end - row),
                          .num_cols = std::min<std::int64_t>(kTileCols, cols.end - col)};
      float* out = gemm.out + row * gemm.out_stride + col;
      const TileSum sum(a, b, inner.size());
      if (tile.num_rows == kTileRows && tile.num_cols == kTileCols) {
        sum.store(out, gemm.out_stride, update, bias);
      } else {
        sum.store_part(out, gemm.out_stride, tile, update, bias);
      }
      if (is_last && gemm.epilogue != nullptr) gemm.epilogue->finish(tile);
    }
  }
}

// One thread's rectangle of the output.
void multiply_part(const Gemm& gemm, Span all_rows, Span all_cols) {
  thread_local const PackedBlocks packed;
  const std::int64_t num_inner = block_length(gemm.k, kMaxInner, 1);
  const std::int64_t num_rows = block_length(all_rows.size(), kMaxRows, kTileRows);
  const std::int64_t num_cols = block_length(all_cols.size(), kMaxCols, kTileCols);
  for (std::int64_t col = all_cols.begin; col < all_cols.end; col += num_cols) {
    const Span cols{col, std::min(col + num_cols, all_cols.end)};
    for (std::int64_t k = 0; k < gemm.k; k += num_inner) {
      const Span inner{k, std::min(k + num_inner, gemm.k)};
      pack_block<kTileCols>(packed.b.data(), gemm.b, cols, inner);
      for (std::int64_t row = all_rows.begin; row < all_rows.end; row += num_rows) {
        const Span rows{row, std::min(row + num_rows, all_rows.end)};
        pack_block<kTileRows>(packed.a.data(), gemm.a, rows, inner);
        multiply_block(gemm, packed, rows, cols, inner);
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
#pragma omp parallel if (gemm.m * gemm.n * gemm.k > kMinParallelWork)
  {
    const std::int64_t num_threads = omp_get_num_threads();
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t row_pieces = num_row_pieces(gemm, num_threads);
    const std::int64_t col_pieces = num_threads / row_pieces;
    multiply_part(gemm, piece(gemm.m, row_pieces, thread / col_pieces, kTileRows),
                  piece(gemm.n, col_pieces, thread % col_pieces, kTileCols));
  }
}

}  // namespace redspine
