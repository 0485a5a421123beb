// LayerNorm and RmsNorm forward, with and without an addition in front: one block per row. The row
// is read from memory once and then, for the variance and for the result, from the cache:
// differences from the mean do not cancel as mean(x^2) - mean^2 would.
#include <cmath>

#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/norm.h"

namespace redspine::cuda {
namespace {

// What is normalised are the rows of x; where there is a sum, x is that, and is first written as
// residual + branch.
template <class T>
struct NormInput {
  const T* x;
  T* sum;  // null for none
  const T* residual;
  const T* branch;
};

template <class T>
struct NormForward {
  T* out;
  float* mean;  // null for RmsNorm
  float* rstd;
  NormInput<T> in;
  const float* weight;
  const float* bias;  // null for none
  std::int64_t cols;
  float epsilon;
};

template <NormVariant kind, int width, class T>
__global__ void __launch_bounds__(kNormThreads) norm_kernel(NormForward<T> op) {
  auto& shared = *shared_memory<ReductionShared<float>>();
  const std::int64_t row = blockIdx.x;
  const auto cols = static_cast<float>(op.cols);

  // What is normalised is what is kept, rounded as it is: the backward pass reads that.
  const T* x = op.in.x + row * op.cols;
  if (op.in.sum != nullptr) {
    T* sum = op.in.sum + row * op.cols;
    const T* residual = op.in.residual + row * op.cols;
    const T* branch = op.in.branch + row * op.cols;
    for_own_columns<width>(op.cols, [&](std::int64_t c) {
      Floats<width> v = load<width>(residual + c);
      const Floats<width> added = load<width>(branch + c);
#pragma unroll
      for (int j = 0; j < width; ++j) v.values[j] += added.values[j];
      store(sum + c, v);
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

// `op` is an operation of this kind of norm, of `x`; a layer norm's means and bias come beside.
template <NormVariant kind, class T, class Op>
void normalise(cudaStream_t stream, const Op& op, const NormInput<T>& x, Access access) {
  NormForward<T> forward{.out = elements<T>(op.out),
                         .mean = nullptr,
                         .rstd = elements<float>(op.rstd),
                         .in = x,
                         .weight = elements<float>(op.weight),
                         .bias = nullptr,
                         .cols = op.out.cols(),
                         .epsilon = op.epsilon};
  if constexpr (kind == NormVariant::layer) {
    forward.mean = elements<float>(op.mean);
    forward.bias = elements_or_null<float>(op.bias);
  }
  const std::int64_t rows = op.out.rows();
  if (rows == 0) return;
  with_width<T>(access, [&]<int width>() {
    launch(stream,
           {static_cast<unsigned>(rows), block_size_for(forward.cols / width, kNormThreads),
            sizeof(ReductionShared<float>)},
           norm_kernel<kind, width, T>, forward);
  });
}

template <class T>
NormInput<T> input(ConstTensorView x) {
  return {.x = elements<T>(x), .sum = nullptr, .residual = nullptr, .branch = nullptr};
}

template <class T, class Op>
NormInput<T> summed_input(const Op& op) {
  return {.x = elements<T>(op.sum),
          .sum = elements<T>(op.sum),
          .residual = elements<T>(op.residual),
          .branch = elements<T>(op.branch)};
}

}  // namespace

void CudaKernels::run(const LayerNorm& op) const {
  with_type(op.out.dtype(), [&]<class T>() {
    normalise<NormVariant::layer>(
        stream_, op, input<T>(op.x),
        access_to_rows<T>(op.out.cols(), op.out, op.x, op.weight, op.bias));
  });
}

void CudaKernels::run(const AddLayerNorm& op) const {
  with_type(op.out.dtype(), [&]<class T>() {
    normalise<NormVariant::layer>(stream_, op, summed_input<T>(op),
                                  access_to_rows<T>(op.out.cols(), op.out, op.sum, op.residual,
                                                    op.branch, op.weight, op.bias));
  });
}

void CudaKernels::run(const RmsNorm& op) const {
  with_type(op.out.dtype(), [&]<class T>() {
    normalise<NormVariant::rms>(stream_, op, input<T>(op.x),
                                access_to_rows<T>(op.out.cols(), op.out, op.x, op.weight));
  });
}

void CudaKernels::run(const AddRmsNorm& op) const {
  with_type(op.out.dtype(), [&]<class T>() {
    normalise<NormVariant::rms>(
        stream_, op, summed_input<T>(op),
        access_to_rows<T>(op.out.cols(), op.out, op.sum, op.residual, op.branch, op.weight));
  });
}

}  // namespace redspine::cuda
