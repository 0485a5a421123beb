#include "tests/cuda_on_host/matmul_problem.h"

#include <cblas-openblas.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "tensor/philox.h"

namespace on_host {
namespace {

// Column-major f32 without gaps.
struct Matrix {
  std::int64_t rows;
  std::int64_t cols;
  std::vector<float> values;

  float& at(std::int64_t row, std::int64_t col) {
    return values[static_cast<std::size_t>(col * rows + row)];
  }
  float at(std::int64_t row, std::int64_t col) const {
    return values[static_cast<std::size_t>(col * rows + row)];
  }
};

float load(const void* memory, cudaDataType_t type, std::int64_t index) {
  return type == CUDA_R_16BF ? __bfloat162float(static_cast<const __nv_bfloat16*>(memory)[index])
                             : static_cast<const float*>(memory)[index];
}

void store(void* memory, cudaDataType_t type, std::int64_t index, float value) {
  if (type == CUDA_R_16BF) {
    static_cast<__nv_bfloat16*>(memory)[index] = __float2bfloat16_rn(value);
  } else {
    static_cast<float*>(memory)[index] = value;
  }
}

Matrix read(const void* memory, const Layout& layout) {
  Matrix matrix{.rows = layout.rows, .cols = layout.cols, .values = {}};
  matrix.values.resize(static_cast<std::size_t>(layout.rows * layout.cols));
  for (std::int64_t col = 0; col < layout.cols; ++col) {
    for (std::int64_t row = 0; row < layout.rows; ++row) {
      matrix.at(row, col) = load(memory, layout.type, col * layout.ld + row);
    }
  }
  return matrix;
}

void write(void* memory, const Layout& layout, const Matrix& matrix) {
  for (std::int64_t col = 0; col < layout.cols; ++col) {
    for (std::int64_t row = 0; row < layout.rows; ++row) {
      store(memory, layout.type, col * layout.ld + row, matrix.at(row, col));
    }
  }
}

// The epilogues' GELU is the one by tanh.
constexpr float kCubic = 0.044715F;
const float kScale = std::sqrt(2.0F / std::numbers::pi_v<float>);

float gelu(float x) { return 0.5F * x * (1.0F + std::tanh(kScale * (x + kCubic * x * x * x))); }

float gelu_derivative(float x) {
  const float t = std::tanh(kScale * (x + kCubic * x * x * x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kScale * (1.0F + 3.0F * kCubic * x * x);
}

cudaDataType_t type_or(int type, cudaDataType_t otherwise) {
  return type == -1 ? otherwise : static_cast<cudaDataType_t>(type);
}

CBLAS_TRANSPOSE blas(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

// The sum of op(matrix) over its columns (of B: its rows), which is k either way.
void write_bias_gradient(const MatmulProblem& problem, const Matrix& a, const Matrix& b) {
  const cublasLtMatmulDescOpaque_t& description = problem.description;
  const bool of_a = description.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  const Matrix& matrix = of_a ? a : b;
  // Along which dim of the stored matrix does k run?
  const bool k_is_cols =
      of_a ? description.transpose_a == CUBLAS_OP_N : description.transpose_b != CUBLAS_OP_N;
  const std::int64_t count = of_a ? problem.m() : problem.n();
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = 0.0F;
    for (std::int64_t k = 0; k < problem.k(); ++k) {
      sum += k_is_cols ? matrix.at(i, k) : matrix.at(k, i);
    }
    store(description.bias, type_or(description.bias_type, problem.d.type), i, sum);
  }
}

void apply_epilogue(const MatmulProblem& problem, Matrix& out) {
  const cublasLtMatmulDescOpaque_t& description = problem.description;
  const cublasLtEpilogue_t epilogue = description.epilogue;
  const cudaDataType_t bias_type = type_or(description.bias_type, problem.d.type);
  const cudaDataType_t aux_type = type_or(description.aux_type, problem.d.type);
  const bool is_backward = (epilogue & 64) != 0;
  const bool is_forward = (epilogue & 32) != 0;
  std::vector<float> sums(static_cast<std::size_t>(out.rows));
  for (std::int64_t col = 0; col < out.cols; ++col) {
    for (std::int64_t row = 0; row < out.rows; ++row) {
      float& value = out.at(row, col);
      const std::int64_t aux_index = col * description.aux_ld + row;
      if (has_bias(epilogue)) value += load(description.bias, bias_type, row);
      if (is_forward) {
        if (has_aux(epilogue)) store(description.aux, aux_type, aux_index, value);
        value = gelu(value);
      }
      if (is_backward) value *= gelu_derivative(load(description.aux, aux_type, aux_index));
      sums[static_cast<std::size_t>(row)] += value;
    }
  }
  if (epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
    for (std::int64_t row = 0; row < out.rows; ++row) {
      store(description.bias, bias_type, row, sums[static_cast<std::size_t>(row)]);
    }
  }
}

bool is_known(cublasLtEpilogue_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return true;
  }
  return false;
}

}  // namespace

std::size_t size_of(cudaDataType_t type) { return type == CUDA_R_16BF ? 2 : 4; }

std::size_t extent(const Layout& layout) {
  return static_cast<std::size_t>(layout.ld * (layout.cols - 1) + layout.rows) *
         size_of(layout.type);
}

bool has_bias(cublasLtEpilogue_t epilogue) { return (epilogue & 4) != 0; }

bool has_bias_gradient(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD || epilogue == CUBLASLT_EPILOGUE_BGRADA ||
         epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

bool has_aux(cublasLtEpilogue_t epilogue) { return (epilogue & 128) != 0; }

std::uint64_t MatmulProblem::hash() const {
  std::uint64_t hash = 0;
  const auto add = [&](auto value) {
    hash = redspine::mix64(hash ^ static_cast<std::uint64_t>(value));
  };
  for (const Layout* layout : {&a, &b, &c, &d}) {
    add(layout->type);
    add(layout->rows);
    add(layout->cols);
    add(layout->ld);
  }
  add(description.transpose_a);
  add(description.transpose_b);
  add(description.epilogue);
  add(description.bias_type);
  add(description.aux_type);
  add(description.aux_ld);
  return hash;
}

cublasStatus_t check(const MatmulProblem& problem) {
  const cublasLtMatmulDescOpaque_t& description = problem.description;
  for (const Layout* layout : {&problem.a, &problem.b, &problem.c, &problem.d}) {
    if (layout->rows < 1 || layout->cols < 1 || layout->ld < layout->rows) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  const bool a_is_plain = description.transpose_a == CUBLAS_OP_N;
  const bool b_is_plain = description.transpose_b == CUBLAS_OP_N;
  const bool dims_agree = (a_is_plain ? problem.a.rows : problem.a.cols) == problem.m() &&
                          (b_is_plain ? problem.b.cols : problem.b.rows) == problem.n() &&
                          (b_is_plain ? problem.b.rows : problem.b.cols) == problem.k() &&
                          problem.c.rows == problem.m() && problem.c.cols == problem.n();
  if (!dims_agree) return CUBLAS_STATUS_INVALID_VALUE;

  // Of the table of types for CUBLAS_COMPUTE_32F, the rows without f16 and integers.
  const cudaDataType_t in = problem.a.type;
  const cudaDataType_t out = problem.d.type;
  const bool types_fit = problem.b.type == in && problem.c.type == out &&
                         ((in == CUDA_R_32F && out == CUDA_R_32F) ||
                          (in == CUDA_R_16BF && (out == CUDA_R_16BF || out == CUDA_R_32F)));
  if (!types_fit) return CUBLAS_STATUS_NOT_SUPPORTED;

  if (!is_known(description.epilogue)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (type_or(description.bias_type, out) != out) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (has_aux(description.epilogue)) {
    if (description.aux_ld % 8 != 0 || description.aux_ld < problem.m()) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (type_or(description.aux_type, out) != out) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

void compute(const MatmulProblem& problem, const MatmulOperands& operands) {
  const cublasLtMatmulDescOpaque_t& description = problem.description;
  const Matrix a = read(operands.a, problem.a);
  const Matrix b = read(operands.b, problem.b);
  // C is not read where beta is 0: it may hold anything.
  Matrix out{.rows = problem.m(), .cols = problem.n(), .values = {}};
  if (operands.beta == 0.0F) {
    out.values.resize(static_cast<std::size_t>(out.rows * out.cols));
  } else {
    out = read(operands.c, problem.c);
  }
  cblas_sgemm(CblasColMajor, blas(description.transpose_a), blas(description.transpose_b),
              static_cast<blasint>(problem.m()), static_cast<blasint>(problem.n()),
              static_cast<blasint>(problem.k()), operands.alpha, a.values.data(),
              static_cast<blasint>(a.rows), b.values.data(), static_cast<blasint>(b.rows),
              operands.beta, out.values.data(), static_cast<blasint>(out.rows));
  if (description.epilogue == CUBLASLT_EPILOGUE_BGRADA ||
      description.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
    write_bias_gradient(problem, a, b);
  } else if (description.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    apply_epilogue(problem, out);
  }
  write(operands.d, problem.d, out);
}

}  // namespace on_host
