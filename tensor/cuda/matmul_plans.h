// Products by cuBLASLt: what the library chose for each shape is asked for once and kept. Owned by
// the kernels; used from one thread.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>

#include "tensor/cuda/scratch.h"
#include "tensor/kernels.h"

namespace redspine::cuda {

/// What the library does to a product on its way to memory. A bias has one value per column of
/// `out`; `aux` has the shape of `out`.
enum class Epilogue {
  none,
  bias,
  gelu,        // aux = x, out = gelu(x) by tanh
  bias_gelu,   // the same of x = product + bias
  gelu_slope,  // out = product * gelu'(aux) by tanh
};

/// A matrix whose rows may lie further apart than they are long, by its shape and that distance.
template <class View>
struct MatrixRows {
  View view;
  std::int64_t stride;  // elements

  MatrixRows(View matrix) : view(matrix), stride(matrix.cols()) {}  // NOLINT: a view is one
  MatrixRows(View matrix, std::int64_t row_stride) : view(matrix), stride(row_stride) {}
};

/// out[M, N] = epilogue(A B + beta * out), where A[M, K] is `a` or its transpose and B[K, N] is `b`
/// or its. No dim is 0.
struct Product {
  MatrixRows<TensorView> out;
  MatrixRows<ConstTensorView> a;
  MatrixRows<ConstTensorView> b;
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  float beta = 0.0F;
  Epilogue epilogue = Epilogue::none;
  ConstTensorView bias = {};
  ConstTensorView aux = {};
};

/// All that the library's choice depends on.
struct ProductShape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t out_stride;
  std::int64_t a_stride;
  std::int64_t b_stride;
  Transpose transpose_a;
  Transpose transpose_b;
  DType input;
  DType output;
  Epilogue epilogue;
  std::uint32_t alignment;           // bytes, of the least aligned matrix; at most 256
  std::uint32_t epilogue_alignment;  // of bias and aux

  auto operator<=>(const ProductShape&) const = default;
};

class MatmulPlans {
 public:
  MatmulPlans();
  ~MatmulPlans();
  MatmulPlans(const MatmulPlans&) = delete;
  MatmulPlans& operator=(const MatmulPlans&) = delete;

  /// Enqueues the product. `scratch` lends the library its workspace. False, with nothing enqueued,
  /// where the library can do it without this epilogue only.
  bool run(const Product& product, Scratch& scratch, cudaStream_t stream);

 private:
  struct DestroyDescription {
    void operator()(cublasLtMatmulDesc_t description) const;
    void operator()(cublasLtMatrixLayout_t layout) const;
  };
  using Description =
      std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DestroyDescription>;
  using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, DestroyDescription>;

  // Row-major matrices are the transposes of the library's column-major ones, so that it computes
  // out^T = B^T A^T: its first operand is our second.
  struct Plan {
    Description description;
    Layout first;
    Layout second;
    Layout out;
    cublasLtMatmulAlgo_t algorithm;
  };

  // Null or nothing where the library has no way.
  const Plan* plan_for(const Product& product);
  std::optional<Plan> make_plan(const Product& product) const;

  cublasLtHandle_t library_ = nullptr;
  std::map<ProductShape, std::optional<Plan>> plans_;
};

}  // namespace redspine::cuda
