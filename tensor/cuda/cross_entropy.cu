// Cross entropy over a shard of the vocabulary: one block per row of logits. A row may start
// anywhere (GPT-2 has 50257 columns), so it is walked from its first 16-byte boundary.
#include <cmath>

#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/exact_mode.h"
#include "tensor/cuda/reduce.h"

namespace redspine::cuda {
namespace {

constexpr int kRowThreads = 256;

// body.operator()<width>(c) for pieces [c, c + width) of the row, each once, by some thread.
template <class T, class Body>
__device__ void for_columns(const T* row, std::int64_t cols, const Body& body) {
  constexpr int kWidth = kFullWidth<T>;
  const auto offset =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % kVectorBytes / sizeof(T));
  const std::int64_t begin = min(cols, (kWidth - offset) % kWidth);
  const std::int64_t end = begin + (cols - begin) / kWidth * kWidth;
  const std::int64_t thread = threadIdx.x;
  if (thread < begin) body.template operator()<1>(thread);
  for (std::int64_t c = begin + thread * kWidth; c < end; c += std::int64_t{blockDim.x} * kWidth) {
    body.template operator()<kWidth>(c);
  }
  if (end + thread < cols) body.template operator()<1>(end + thread);
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    row_max_kernel(float* max, const T* logits, std::int64_t cols) {
  auto& shared = *shared_memory<ReductionShared<float>>();
  const T* row = logits + std::int64_t{blockIdx.x} * cols;
  float largest = -INFINITY;
  for_columns(row, cols, [&]<int width>(std::int64_t c) {
    const Floats<width> v = load<width>(row + c);
#pragma unroll
    for (int j = 0; j < width; ++j) largest = fmaxf(largest, v.values[j]);
  });
  largest = reduce_block(largest, shared.per_warp, Larger{});
  if (threadIdx.x == 0) max[blockIdx.x] = largest;
}

struct Softmax {
  const float* max;
  const std::int32_t* targets;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t first_column;
};

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    exp_sums_kernel(float* sums, const T* logits, Softmax softmax) {
  auto& shared = *shared_memory<ReductionShared<float>>();
  const std::int64_t n = blockIdx.x;
  const T* row = logits + n * softmax.cols;
  const float max = softmax.max[n];
  float sum = 0.0F;
  for_columns(row, softmax.cols, [&]<int width>(std::int64_t c) {
    const Floats<width> v = load<width>(row + c);
#pragma unroll
    for (int j = 0; j < width; ++j) sum += expf(v.values[j] - max);
  });
  sum = reduce_block(sum, shared.per_warp, Plus{});
  if (threadIdx.x != 0) return;
  sums[n] = sum;
  const std::int64_t target = softmax.targets[n] - softmax.first_column;
  const bool is_here = target >= 0 && target < softmax.cols;  // an ignored target of -1 never is
  sums[softmax.rows + n] = is_here ? widen(row[target]) - max : 0.0F;
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    logits_gradient_kernel(T* logits, const float* exp_sums, Softmax softmax, float scale) {
  const std::int64_t n = blockIdx.x;
  T* row = logits + n * softmax.cols;
  const float max = softmax.max[n];
  const bool has_target = softmax.targets[n] >= 0;
  const float factor = has_target ? scale / exp_sums[n] : 0.0F;
  const std::int64_t target = softmax.targets[n] - softmax.first_column;
  for_columns(row, softmax.cols, [&]<int width>(std::int64_t c) {
    Floats<width> v = load<width>(row + c);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      // A row without a target is 0, whatever its logits are.
      const float gradient = has_target ? expf(v.values[j] - max) * factor : 0.0F;
      v.values[j] = has_target && c + j == target ? gradient - scale : gradient;
    }
    store(row + c, v);
  });
}

constexpr int kLossThreads = 512;

// One block, since a chunk has some thousand rows at most.
__global__ void __launch_bounds__(kLossThreads)
    loss_kernel(double* loss, const float* sums, const std::int32_t* targets, std::int64_t rows) {
  auto& shared = *shared_memory<ReductionShared<double>>();
  double sum = 0.0;
  for (std::int64_t n = threadIdx.x; n < rows; n += kLossThreads) {
    if (targets[n] >= 0) {
      sum += log(static_cast<double>(sums[n])) - static_cast<double>(sums[rows + n]);
    }
  }
  sum = reduce_block(sum, shared.per_warp, Plus{});
  if (threadIdx.x == 0) *loss += sum;
}

template <class T>
LaunchShape block_a_row(ConstTensorView logits) {
  return {static_cast<unsigned>(logits.rows()),
          block_size_for(logits.cols() / kFullWidth<T>, kRowThreads),
          sizeof(ReductionShared<float>)};
}

}  // namespace

void CudaKernels::run(const RowMax& op) const {
  if (op.logits.rows() == 0) return;
  with_type(op.logits.dtype(), [&]<class T>() {
    launch(stream_, block_a_row<T>(op.logits), row_max_kernel<T>, elements<float>(op.max),
           elements<T>(op.logits), op.logits.cols());
  });
}

void CudaKernels::run(const CrossEntropySums& op) const {
  reject_order("CrossEntropySums", op.order != nullptr);
  if (op.logits.rows() == 0) return;
  const Softmax softmax{elements<float>(op.max), elements<std::int32_t>(op.targets),
                        op.logits.rows(), op.logits.cols(), op.first_column};
  with_type(op.logits.dtype(), [&]<class T>() {
    launch(stream_, block_a_row<T>(op.logits), exp_sums_kernel<T>, elements<float>(op.sums),
           elements<T>(op.logits), softmax);
  });
}

void CudaKernels::run(const CrossEntropyLoss& op) const {
  launch(stream_, {1, kLossThreads, sizeof(ReductionShared<double>)}, loss_kernel,
         elements<double>(op.loss), elements<float>(op.sums), elements<std::int32_t>(op.targets),
         op.targets.count());
}

void CudaKernels::run(const CrossEntropyBackward& op) const {
  if (op.logits.rows() == 0) return;
  const Softmax softmax{elements<float>(op.max), elements<std::int32_t>(op.targets),
                        op.logits.rows(), op.logits.cols(), op.first_column};
  with_type(op.logits.dtype(), [&]<class T>() {
    launch(stream_, block_a_row<T>(op.logits), logits_gradient_kernel<T>, elements<T>(op.logits),
           elements<float>(op.sums), softmax, op.scale);
  });
}

}  // namespace redspine::cuda
