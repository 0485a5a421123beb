// LayerNorm and RmsNorm forward: a block a row. The row is read from memory once and then, for the
// variance and for the result, from the cache: differences from the mean do not cancel as
// mean(x^2) - mean^2 would.
#include <cmath>

#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/norm.h"

namespace redspine::cuda {
namespace {

template <class T>
struct NormForward {
  T* out;
  float* mean;  // null for RmsNorm
  float* rstd;
  T* x;
  const T* residual;  // null for none
  const float* weight;
  const float* bias;  // null for none
  std::int64_t cols;
  float epsilon;
};

template <NormVariant kind, int width, class T>
__global__ void __launch_bounds__(kNormThreads) norm_kernel(NormForward<T> op) {
  auto& shared = *shared_memory<ReductionShared<float>>();
  const std::int64_t row = blockIdx.x;
  T* x = op.x + row * op.cols;
  const auto cols = static_cast<float>(op.cols);

  // What is normalised is what is kept, rounded as it is: the backward pass reads that.
  if (op.residual != nullptr) {
    const T* residual = op.residual + row * op.cols;
    for_own_columns<width>(op.cols, [&](std::int64_t c) {
      Floats<width> v = load<width>(x + c);
      const Floats<width> added = load<width>(residual + c);
#pragma unroll
      for (int j = 0; j < width; ++j) v.values[j] += added.values[j];
      store(x + c, v);
    });
  }

  float mean = 0.0F;
  if constexpr (kind == NormVariant::layer) {
    float sum = 0.0F;
    for_own_columns<width>(op.cols, [&](std::int64_t c) {
      const Floats<width> v = load<width>(x + c);
#pragma unroll
      for (int j = 0; j < width; ++j) sum += v.values[j];
    });
    mean = reduce_block(sum, shared.per_warp, Plus{}) / cols;
  }
  float squares = 0.0F;
  for_own_columns<width>(op.cols, [&](std::int64_t c) {
    const Floats<width> v = load<width>(x + c);
#pragma unroll
    for (int j = 0; j < width; ++j) squares += (v.values[j] - mean) * (v.values[j] - mean);
  });
  const float rstd =
      1.0F / sqrtf(reduce_block(squares, shared.per_warp, Plus{}) / cols + op.epsilon);
  if (threadIdx.x == 0) {
    if constexpr (kind == NormVariant::layer) op.mean[row] = mean;
    op.rstd[row] = rstd;
  }

  T* out = op.out + row * op.cols;
  for_own_columns<width>(op.cols, [&](std::int64_t c) {
    Floats<width> v = load<width>(x + c);
    const Floats<width> weight = load<width>(op.weight + c);
#pragma unroll
    for (int j = 0; j < width; ++j) v.values[j] = (v.values[j] - mean) * rstd * weight.values[j];
    if (op.bias != nullptr) {
      const Floats<width> bias = load<width>(op.bias + c);
#pragma unroll
      for (int j = 0; j < width; ++j) v.values[j] += bias.values[j];
    }
    store(out + c, v);
  });
}

template <NormVariant kind, class T>
void normalise(cudaStream_t stream, const NormForward<T>& op, std::int64_t rows, Access access) {
  if (rows == 0) return;
  with_width<T>(access, [&]<int width>() {
    launch(stream,
           {static_cast<unsigned>(rows), block_size_for(op.cols / width, kNormThreads),
            sizeof(ReductionShared<float>)},
           norm_kernel<kind, width, T>, op);
  });
}

}  // namespace

void CudaKernels::run(const LayerNorm& op) const {
  with_type(op.x.dtype(), [&]<class T>() {
    const NormForward<T> forward{.out = elements<T>(op.out),
                                 .mean = elements<float>(op.mean),
                                 .rstd = elements<float>(op.rstd),
                                 .x = elements<T>(op.x),
                                 .residual = elements_or_null<T>(op.residual),
                                 .weight = elements<float>(op.weight),
                                 .bias = elements_or_null<float>(op.bias),
                                 .cols = op.x.cols(),
                                 .epsilon = op.epsilon};
    normalise<NormVariant::layer>(
        stream_, forward, op.x.rows(),
        access_to_rows<T>(op.x.cols(), op.out, op.x, op.residual, op.weight, op.bias));
  });
}

void CudaKernels::run(const RmsNorm& op) const {
  with_type(op.x.dtype(), [&]<class T>() {
    const NormForward<T> forward{.out = elements<T>(op.out),
                                 .mean = nullptr,
                                 .rstd = elements<float>(op.rstd),
                                 .x = elements<T>(op.x),
                                 .residual = elements_or_null<T>(op.residual),
                                 .weight = elements<float>(op.weight),
                                 .bias = nullptr,
                                 .cols = op.x.cols(),
                                 .epsilon = op.epsilon};
    normalise<NormVariant::rms>(
        stream_, forward, op.x.rows(),
        access_to_rows<T>(op.x.cols(), op.out, op.x, op.residual, op.weight));
  });
}

}  // namespace redspine::cuda
