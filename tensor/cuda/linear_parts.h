// What linear layers need besides products, where the library does not do it with the product, or
// not exactly enough. All of it is enqueued on `stream`. Local.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/scratch.h"
#include "tensor/kernels.h"

namespace redspine::cuda {

/// x[r,c] += bias[c].
void add_bias(cudaStream_t stream, TensorView x, ConstTensorView bias);

/// out = gelu(x).
void apply_gelu(cudaStream_t stream, TensorView out, ConstTensorView x, GeluKind kind);

/// dx *= gelu'(x).
void multiply_by_gelu_slope(cudaStream_t stream, TensorView dx, ConstTensorView x, GeluKind kind);

/// Copies a bf16 matrix whose rows lie `from_stride` elements apart to one whose rows lie
/// `to_stride` apart.
struct RowCopy {
  void* to;
  std::int64_t to_stride;
  const void* from;
  std::int64_t from_stride;
  std::int64_t rows;
  std::int64_t cols;
};
void copy_rows(cudaStream_t stream, const RowCopy& copy);

/// sums[c] += the sum over r of x[r,c]; sums are f32. The order is fixed by the shape.
void add_columns(cudaStream_t stream, TensorView sums, ConstTensorView x, Scratch& scratch);

}  // namespace redspine::cuda
