#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/reduce.h"

namespace redspine::cuda {
namespace {

template <class T>
struct LookUp {
  T* out;
  const T* weight;
  const T* position;  // null for none
  const std::int32_t* tokens;
  std::int64_t first_row;
  std::int64_t num_rows;
  std::int64_t length;
  std::int64_t cols;

  template <int width>
  __device__ void apply(std::int64_t n, std::int64_t c) const {
    const std::int64_t row = tokens[n] - first_row;
    Floats<width> values{};
    if (row >= 0 && row < num_rows) values = load<width>(weight + row * cols + c);
    if (position != nullptr) {
      const Floats<width> added = load<width>(position + n % length * cols + c);
#pragma unroll
      for (int j = 0; j < width; ++j) values.values[j] += added.values[j];
    }
    store(out + n * cols + c, values);
  }
};

// The gradient of positions: those of the batch's samples, in ascending order.
template <class T>
struct PositionGradient {
  float* dposition;
  const T* dout;
  std::int64_t batch;
  std::int64_t length;
  std::int64_t cols;

  template <int width>
  __device__ void apply(std::int64_t t, std::int64_t c) const {
    Floats<width> sum = load<width>(dposition + t * cols + c);
    for (std::int64_t b = 0; b < batch; ++b) {
      const Floats<width> added = load<width>(dout + (b * length + t) * cols + c);
#pragma unroll
      for (int j = 0; j < width; ++j) sum.values[j] += added.values[j];
    }
    store(dposition + t * cols + c, sum);
  }
};

// The gradient of the weight: a block owns kTileRows rows of the weight and kTileCols columns. It
// reads all tokens, a batch at a time, lists those of its rows in ascending order, and adds up
// their gradients, each thread in a column of its own. So the order of every sum is that of the
// tokens, without atomics and without sorting.
constexpr int kTileRows = 32;
constexpr int kTileCols = 128;
constexpr int kTileWarps = kTileCols / kWarpSize;
constexpr int kTokensPerThread = 8;
constexpr int kTokensPerBatch = kTileCols * kTokensPerThread;

struct TileShared {
  float sums[kTileRows][kTileCols];
  std::int32_t num_found[kTokensPerThread][kTileWarps];  // by each warp in each stripe of a batch
  std::int32_t found[kTokensPerBatch];  // place in the batch * kTileRows + row of the tile
};

template <class T>
struct WeightGradient {
  float* dweight;
  const T* dout;
  const std::int32_t* tokens;
  std::int64_t num_tokens;
  std::int64_t first_row;
  std::int64_t num_rows;
  std::int64_t cols;
};

// Lists the batch's tokens that are in the tile; returns how many. A stripe of a batch has a token
// for each thread. No thread writes the list before all have come here again.
__device__ int find_tokens(TileShared& shared, const std::int32_t* tokens, std::int64_t count,
                           std::int64_t first_row) {
  const unsigned lane = threadIdx.x % kWarpSize;
  const unsigned warp = threadIdx.x / kWarpSize;
  std::int64_t rows[kTokensPerThread];
  unsigned places[kTokensPerThread];
#pragma unroll
  for (int stripe = 0; stripe < kTokensPerThread; ++stripe) {
    const std::int64_t i = std::int64_t{stripe} * kTileCols + threadIdx.x;
    rows[stripe] = i < count ? tokens[i] - first_row : -1;
    const bool is_here = rows[stripe] >= 0 && rows[stripe] < kTileRows;
    const unsigned here = __ballot_sync(kAllLanes, is_here ? 1 : 0);
    if (!is_here) rows[stripe] = -1;
    places[stripe] = __popc(here & ((1U << lane) - 1U));
    if (lane == 0) shared.num_found[stripe][warp] = __popc(here);
  }
  __syncthreads();
  int num_found = 0;
#pragma unroll
  for (int stripe = 0; stripe < kTokensPerThread; ++stripe) {
    for (unsigned w = 0; w < kTileWarps; ++w) {
      if (w == warp && rows[stripe] >= 0) {
        shared.found[num_found + places[stripe]] = static_cast<std::int32_t>(
            (std::int64_t{stripe} * kTileCols + threadIdx.x) * kTileRows + rows[stripe]);
      }
      num_found += shared.num_found[stripe][w];
    }
  }
  __syncthreads();
  return num_found;
}

template <class T>
__global__ void __launch_bounds__(kTileCols) embedding_backward_kernel(WeightGradient<T> op) {
  auto& shared = *shared_memory<TileShared>();
  const std::int64_t tile_row = std::int64_t{blockIdx.x} * kTileRows;
  const std::int64_t c = std::int64_t{blockIdx.y} * kTileCols + threadIdx.x;
  const bool has_column = c < op.cols;
  for (int row = 0; row < kTileRows; ++row) shared.sums[row][threadIdx.x] = 0.0F;
  unsigned is_touched = 0;  // bit r: row r of the tile has a token
  static_assert(kTileRows == 32);

  for (std::int64_t begin = 0; begin < op.num_tokens; begin += kTokensPerBatch) {
    const std::int64_t count = min(op.num_tokens - begin, std::int64_t{kTokensPerBatch});
    const int num_found = find_tokens(shared, op.tokens + begin, count, op.first_row + tile_row);
    const T* dout = op.dout + begin * op.cols + c;
#pragma unroll 4
    for (int i = 0; i < num_found; ++i) {
      const std::int32_t found = shared.found[i];
      const int row = found % kTileRows;
      is_touched |= 1U << row;
      if (has_column) {
        shared.sums[row][threadIdx.x] += widen(dout[std::int64_t{found / kTileRows} * op.cols]);
      }
    }
  }

  for (int row = 0; row < kTileRows; ++row) {
    if (has_column && tile_row + row < op.num_rows && (is_touched >> row & 1U) != 0) {
      op.dweight[(tile_row + row) * op.cols + c] += shared.sums[row][threadIdx.x];
    }
  }
}

}  // namespace

void CudaKernels::run(const Embedding& op) const {
  with_type(op.out.dtype(), [&]<class T>() {
    const LookUp<T> look_up{.out = elements<T>(op.out),
                            .weight = elements<T>(op.weight),
                            .position = elements_or_null<T>(op.position),
                            .tokens = elements<std::int32_t>(op.tokens),
                            .first_row = op.first_row,
                            .num_rows = op.weight.rows(),
                            .length = op.out.dim(1),
                            .cols = op.out.cols()};
    for_each_row<T>(stream_, look_up, {op.out.rows(), op.out.cols()},
                    access_to_rows<T>(op.out.cols(), op.out, op.weight, op.position));
  });
}

void CudaKernels::run(const EmbeddingBackward& op) const {
  const std::int64_t num_rows = op.dweight.rows();
  const std::int64_t cols = op.dweight.cols();
  if (cols == 0) return;
  with_type(op.dout.dtype(), [&]<class T>() {
    if (op.dposition.count() != 0) {
      const PositionGradient<T> gradient{.dposition = elements<float>(op.dposition),
                                         .dout = elements<T>(op.dout),
                                         .batch = op.dout.dim(0),
                                         .length = op.dout.dim(1),
                                         .cols = cols};
      for_each_row<T>(stream_, gradient, {op.dout.dim(1), cols},
                      access_to_rows<T>(cols, op.dposition, op.dout));
    }
    if (num_rows == 0) return;
    launch(stream_,
           {dim3(static_cast<unsigned>(divide_up(num_rows, kTileRows)),
                 static_cast<unsigned>(divide_up(cols, kTileCols))),
            kTileCols, sizeof(TileShared)},
           embedding_backward_kernel<T>,
           WeightGradient<T>{.dweight = elements<float>(op.dweight),
                             .dout = elements<T>(op.dout),
                             .tokens = elements<std::int32_t>(op.tokens),
                             .num_tokens = op.tokens.count(),
                             .first_row = op.first_row,
                             .num_rows = num_rows,
                             .cols = cols});
  });
}

}  // namespace redspine::cuda
