// LayerNorm and RmsNorm backward: a block takes some rows, one after the other, and keeps the sums
// over them for the gradients of weight and bias. A thread owns columns, so no sum is shared.
#include <cstddef>

#include "tensor/cuda/column_sums.h"
#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/norm.h"

namespace redspine::cuda {
namespace {

template <class T>
struct NormGradient {
  T* dx;
  float* partials;  // [blocks][2][cols]: the sums for weight, then those for bias
  const T* dout;
  const T* x;
  const float* mean;  // null for RmsNorm
  const float* rstd;
  const float* weight;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t rows_per_block;
};

struct BackwardShared {
  float per_warp[kMaxWarps];
  float sums[1];  // [2][cols], where it fits
};

// Rows whose sums fit into the shared memory that every kernel may use. Longer ones are summed in
// the partial sums' own place, through the cache.
constexpr std::int64_t kMaxSharedCols = 5120;

std::size_t shared_bytes(std::int64_t cols) {
  const std::int64_t num_sums = cols <= kMaxSharedCols ? 2 * cols : 0;
  return offsetof(BackwardShared, sums) + static_cast<std::size_t>(num_sums) * sizeof(float);
}

template <NormVariant kind, int width, class T>
__global__ void __launch_bounds__(kNormThreads, 4) norm_backward_kernel(NormGradient<T> op) {
  auto& shared = *shared_memory<BackwardShared>();
  float* partials = op.partials + std::int64_t{blockIdx.x} * 2 * op.cols;
  float* dweight = op.cols <= kMaxSharedCols ? shared.sums : partials;
  float* dbias = dweight + op.cols;
  for_own_columns<width>(op.cols, [&](std::int64_t c) {
    store(dweight + c, Floats<width>{});
    store(dbias + c, Floats<width>{});
  });

  const std::int64_t begin = std::int64_t{blockIdx.x} * op.rows_per_block;
  const std::int64_t end = min(begin + op.rows_per_block, op.rows);
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = op.x + row * op.cols;
    const T* dout = op.dout + row * op.cols;
    const float mean = kind == NormVariant::layer ? op.mean[row] : 0.0F;
    const float rstd = op.rstd[row];
    float sum_g = 0.0F;
    float sum_gn = 0.0F;
    for_own_columns<width>(op.cols, [&](std::int64_t c) {
      const Floats<width> v = load<width>(x + c);
      const Floats<width> d = load<width>(dout + c);
      const Floats<width> weight = load<width>(op.weight + c);
      Floats<width> gain_sum = load<width>(dweight + c);
      Floats<width> bias_sum = load<width>(dbias + c);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        const float n = (v.values[j] - mean) * rstd;
        const float g = d.values[j] * weight.values[j];
        sum_g += g;
        sum_gn += g * n;
        gain_sum.values[j] += d.values[j] * n;
        bias_sum.values[j] += d.values[j];
      }
      store(dweight + c, gain_sum);
      store(dbias + c, bias_sum);
    });
    const auto cols = static_cast<float>(op.cols);
    const float mean_gn = reduce_block(sum_gn, shared.per_warp, Plus{}) / cols;
    const float mean_g =
        kind == NormVariant::layer ? reduce_block(sum_g, shared.per_warp, Plus{}) / cols : 0.0F;
    T* dx = op.dx + row * op.cols;
    for_own_columns<width>(op.cols, [&](std::int64_t c) {
      const Floats<width> v = load<width>(x + c);
      const Floats<width> d = load<width>(dout + c);
      const Floats<width> weight = load<width>(op.weight + c);
      Floats<width> sum = load<width>(dx + c);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        const float n = (v.values[j] - mean) * rstd;
        sum.values[j] += rstd * (d.values[j] * weight.values[j] - mean_g - n * mean_gn);
      }
      store(dx + c, sum);
    });
  }

  if (dweight != partials) {
    for_own_columns<width>(op.cols, [&](std::int64_t c) {
      store(partials + c, load<width>(dweight + c));
      store(partials + op.cols + c, load<width>(dbias + c));
    });
  }
}

// What the kinds of norm have in common; a layer norm's means and bias gradient come beside.
template <NormVariant kind, class Op>
void differentiate(cudaStream_t stream, Scratch& scratch, const Op& op, ConstTensorView mean,
                   TensorView dbias) {
  const std::int64_t rows = op.x.rows();
  const std::int64_t cols = op.x.cols();
  if (rows == 0 || cols == 0) return;
  const RowBlocks blocks = cut_rows(rows, 1);
  auto* partials = scratch.elements<float>(blocks.count * 2 * cols);
  with_type(op.x.dtype(), [&]<class T>() {
    const NormGradient<T> gradient{.dx = elements<T>(op.dx),
                                   .partials = partials,
                                   .dout = elements<T>(op.dout),
                                   .x = elements<T>(op.x),
                                   .mean = elements_or_null<float>(mean),
                                   .rstd = elements<float>(op.rstd),
                                   .weight = elements<float>(op.weight),
                                   .rows = rows,
                                   .cols = cols,
                                   .rows_per_block = blocks.rows_per_block};
    with_width<T>(access_to_rows<T>(cols, op.dx, op.dout, op.x, op.weight), [&]<int width>() {
      launch(stream,
             {static_cast<unsigned>(blocks.count), block_size_for(cols / width, kNormThreads),
              shared_bytes(cols)},
             norm_backward_kernel<kind, width, T>, gradient);
    });
  });
  add_partial_sums(stream, elements<float>(op.dweight), cols, {partials, blocks.count, 2 * cols});
  if (dbias.count() == 0) return;
  add_partial_sums(stream, elements<float>(dbias), cols, {partials + cols, blocks.count, 2 * cols});
}

}  // namespace

void CudaKernels::run(const LayerNormBackward& op) const {
  differentiate<NormVariant::layer>(stream_, scratch_, op, op.mean, op.dbias);
}

void CudaKernels::run(const RmsNormBackward& op) const {
  differentiate<NormVariant::rms>(stream_, scratch_, op, {}, {});
}

}  // namespace redspine::cuda
