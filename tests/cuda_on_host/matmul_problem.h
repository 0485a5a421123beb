// A product as cuBLASLt is asked for it: descriptions, what is legal, and the arithmetic.
// Matrices are column-major, as there.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstddef>
#include <cstdint>

struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t ld;

  bool operator==(const cublasLtMatrixLayoutOpaque_t&) const = default;
};

struct cublasLtMatmulDescOpaque_t {
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;  // read by BIAS, written by BGRAD
  int bias_type = -1;    // -1: that of D
  void* aux = nullptr;   // written by GELU_AUX, read by DGELU
  std::int64_t aux_ld = 0;
  int aux_type = -1;  // -1: that of D
};

struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::array<std::uint32_t, 4> alignment = {256, 256, 256, 256};  // [A, B, C, D], bytes
};

namespace on_host {

using Layout = cublasLtMatrixLayoutOpaque_t;

struct MatmulProblem {
  cublasLtMatmulDescOpaque_t description;
  Layout a;
  Layout b;
  Layout c;
  Layout d;

  std::int64_t m() const { return d.rows; }
  std::int64_t n() const { return d.cols; }
  std::int64_t k() const { return description.transpose_a == CUBLAS_OP_N ? a.cols : a.rows; }
  /// Of everything that an algorithm depends on.
  std::uint64_t hash() const;
};

struct MatmulOperands {
  float alpha;
  float beta;
  const void* a;
  const void* b;
  const void* c;
  void* d;
};

/// What cublasLtMatmul and its heuristic say of the problem before they look at pointers.
cublasStatus_t check(const MatmulProblem& problem);

/// D = alpha * op(A) * op(B) + beta * C in f32, then the epilogue, rounded once.
void compute(const MatmulProblem& problem, const MatmulOperands& operands);

std::size_t size_of(cudaDataType_t type);
/// Bytes from a matrix' first element to behind its last.
std::size_t extent(const Layout& layout);

bool has_bias(cublasLtEpilogue_t epilogue);  // added
bool has_bias_gradient(cublasLtEpilogue_t epilogue);
bool has_aux(cublasLtEpilogue_t epilogue);

}  // namespace on_host
