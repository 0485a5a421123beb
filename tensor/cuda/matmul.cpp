// The products of linear layers: by the library, with what belongs to them in its epilogues where
// it can, else by kernels of our own behind it.
#include "tensor/cuda/access.h"
#include "tensor/cuda/check.h"
#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/linear_parts.h"

namespace redspine::cuda {
namespace {

// What the library asks of outputs that an epilogue reads or writes besides: rows of whole
// 16-byte pieces, of any type.
template <class... Views>
bool fits_epilogue(std::int64_t cols, const Views&... views) {
  return access_to_rows<BFloat>(cols, views...) == Access::full;
}

// The library's GELU is the one by tanh, with the tanh of the hardware: exact enough where the
// result is rounded to bf16, and only there.
bool has_library_gelu(DType dtype, GeluKind kind) {
  return dtype == DType::bf16 && kind == GeluKind::tanh;
}

}  // namespace

void CudaKernels::multiply(const Product& product) const {
  if (product.out.count() == 0) return;
  if (product.a.count() != 0) {
    matmul_plans_.run(product, scratch_, stream_);
  } else if (product.beta == 0.0F) {
    check_cuda(cudaMemsetAsync(product.out.raw(), 0, product.out.bytes(), stream_),
               "cudaMemsetAsync");
  }
}

void CudaKernels::run(const Matmul& op) const {
  Product product{.out = op.out, .a = op.a, .b = op.b, .transpose_b = op.transpose_b};
  const bool has_bias = op.bias.count() != 0;
  if (has_bias && op.a.count() != 0 && fits_epilogue(op.out.cols(), op.out, op.bias)) {
    product.epilogue = Epilogue::bias;
    product.bias = op.bias;
    multiply(product);
  } else {
    multiply(product);
    if (has_bias) add_bias(stream_, op.out, op.bias);
  }
}

void CudaKernels::run(const MatmulGelu& op) const {
  if (has_library_gelu(op.out.dtype(), op.kind) && op.a.count() != 0 &&
      fits_epilogue(op.out.cols(), op.out, op.x, op.bias)) {
    multiply({.out = op.out,
              .a = op.a,
              .b = op.b,
              .transpose_b = Transpose::yes,
              .epilogue = op.bias.count() != 0 ? Epilogue::bias_gelu : Epilogue::gelu,
              .bias = op.bias,
              .aux = op.x});
  } else {
    run(Matmul{.out = op.x, .a = op.a, .b = op.b, .transpose_b = Transpose::yes, .bias = op.bias});
    apply_gelu(stream_, op.out, op.x, op.kind);
  }
}

void CudaKernels::run(const MatmulGeluBackward& op) const {
  Product product{.out = op.dx, .a = op.a, .b = op.b};
  if (has_library_gelu(op.dx.dtype(), op.kind) && op.a.count() != 0 &&
      fits_epilogue(op.dx.cols(), op.dx, op.x)) {
    product.epilogue = Epilogue::gelu_slope;
    product.aux = op.x;
    multiply(product);
  } else {
    multiply(product);
    multiply_by_gelu_slope(stream_, op.dx, op.x, op.kind);
  }
}

// The sums of columns are a kernel of their own: the library's would overwrite the gradient instead
// of adding to it.
void CudaKernels::run(const WeightGradient& op) const {
  multiply({.out = op.dweight, .a = op.dy, .b = op.x, .transpose_a = Transpose::yes, .beta = 1.0F});
  if (op.dbias.count() != 0) add_columns(stream_, op.dbias, op.dy, scratch_);
}

}  // namespace redspine::cuda
