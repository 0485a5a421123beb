// The products of linear layers: by the library, with what belongs to them in its epilogues where
// it can, else by kernels of our own behind it.
#include "tensor/cuda/access.h"
#include "tensor/cuda/check.h"
#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/exact_mode.h"
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

// Rows that start anywhere keep the library from its fast kernels: a vocabulary of 50257 columns
// would cost several times the time. Copying such a matrix to aligned rows costs a fraction.
bool wants_aligned_rows(const ConstTensorView& matrix) {
  constexpr std::int64_t kMinCount = std::int64_t{1} << 16;  // below, a copy is not worth its start
  return matrix.dtype() == DType::bf16 && matrix.cols() % kFullWidth<BFloat> != 0 &&
         matrix.count() >= kMinCount;
}

// A place for an operand with rows on 16-byte boundaries, in scratch memory.
struct AlignedRows {
  std::int64_t stride;
  std::size_t bytes;

  explicit AlignedRows(const ConstTensorView& matrix)
      : stride((matrix.cols() + kFullWidth<BFloat> - 1) / kFullWidth<BFloat> * kFullWidth<BFloat>),
        bytes(static_cast<std::size_t>(matrix.rows() * stride) * sizeof(BFloat)) {}
};

}  // namespace

bool CudaKernels::multiply(const Product& product) const {
  const TensorView& out = product.out.view;
  const ConstTensorView& a = product.a.view;
  if (out.count() == 0) return true;
  if (a.count() == 0) {
    if (product.beta == 0.0F) {
      check_cuda(cudaMemsetAsync(out.raw(), 0, out.bytes(), stream_), "cudaMemsetAsync");
    }
    return true;
  }
  if (wants_aligned_rows(a) || wants_aligned_rows(out)) return multiply_aligned(product);
  return matmul_plans_.run(product, scratch_, stream_);
}

bool CudaKernels::multiply_aligned(Product product) const {
  const ConstTensorView a = product.a.view;
  const TensorView out = product.out.view;
  const bool moves_a = wants_aligned_rows(a);
  const bool moves_out = wants_aligned_rows(out);
  const AlignedRows a_rows(a);
  const AlignedRows out_rows(out);
  // Behind the workspace that the library is lent.
  const std::size_t bytes = (moves_a ? a_rows.bytes : 0) + (moves_out ? out_rows.bytes : 0);
  auto* place = static_cast<std::byte*>(scratch_.bytes(Scratch::kBytes + bytes)) + Scratch::kBytes;
  if (moves_a) {
    copy_rows(stream_, {place, a_rows.stride, a.raw(), a.cols(), a.rows(), a.cols()});
    product.a = {ConstTensorView(place, DType::bf16, {a.rows(), a.cols()}), a_rows.stride};
    place += a_rows.bytes;
  }
  if (moves_out) {
    product.out = {TensorView(place, DType::bf16, {out.rows(), out.cols()}), out_rows.stride};
  }
  if (!matmul_plans_.run(product, scratch_, stream_)) return false;
  if (moves_out) {
    copy_rows(stream_, {out.raw(), out.cols(), place, out_rows.stride, out.rows(), out.cols()});
  }
  return true;
}

void CudaKernels::run(const AddBias& op) const { add_bias(stream_, op.x, op.bias); }

void CudaKernels::run(const Matmul& op) const {
  reject_order("Matmul", op.order != nullptr);
  Product product{.out = op.out, .a = op.a, .b = op.b, .transpose_b = op.transpose_b};
  const bool has_bias = op.bias.count() != 0;
  if (has_bias && op.a.count() != 0 && fits_epilogue(op.out.cols(), op.out, op.bias)) {
    product.epilogue = Epilogue::bias;
    product.bias = op.bias;
    if (multiply(product)) return;
    product.epilogue = Epilogue::none;
  }
  multiply(product);
  if (has_bias) add_bias(stream_, op.out, op.bias);
}

void CudaKernels::run(const MatmulGelu& op) const {
  if (has_library_gelu(op.out.dtype(), op.kind) && op.a.count() != 0 &&
      fits_epilogue(op.out.cols(), op.out, op.x, op.bias) &&
      multiply({.out = op.out,
                .a = op.a,
                .b = op.b,
                .transpose_b = Transpose::yes,
                .epilogue = op.bias.count() != 0 ? Epilogue::bias_gelu : Epilogue::gelu,
                .bias = op.bias,
                .aux = op.x})) {
    return;
  }
  run(Matmul{.out = op.x, .a = op.a, .b = op.b, .transpose_b = Transpose::yes, .bias = op.bias});
  apply_gelu(stream_, op.out, op.x, op.kind);
}

void CudaKernels::run(const MatmulGeluBackward& op) const {
  Product product{.out = op.dx, .a = op.a, .b = op.b};
  if (has_library_gelu(op.dx.dtype(), op.kind) && op.a.count() != 0 &&
      fits_epilogue(op.dx.cols(), op.dx, op.x)) {
    product.epilogue = Epilogue::gelu_slope;
    product.aux = op.x;
    if (multiply(product)) return;
    product.epilogue = Epilogue::none;
  }
  multiply(product);
  multiply_by_gelu_slope(stream_, op.dx, op.x, op.kind);
}

// The sums of columns are a kernel of their own: the library's would overwrite the gradient instead
// of adding to it.
void CudaKernels::run(const WeightGradient& op) const {
  reject_order("WeightGradient", op.sample_rows != 0);
  multiply({.out = op.dweight,
            .a = op.dy,
            .b = op.x,
            .transpose_a = Transpose::yes,
            .beta = op.update == Update::accumulate ? 1.0F : 0.0F});
  if (op.dbias.count() != 0) add_columns(stream_, op.dbias, op.dy, scratch_);
}

}  // namespace redspine::cuda
