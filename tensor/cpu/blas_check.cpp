#include "tensor/cpu/blas_check.h"

#include <fmt/format.h>

#include <vector>

#include "tensor/device.h"
#include "tensor/error.h"

namespace redspine {
namespace {

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

struct Matrix {
  std::int64_t rows;
  std::int64_t cols;
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(rows * cols));

  float& at(std::int64_t row, std::int64_t col) {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
  TensorView view() { return {values.data(), DType::f32, {rows, cols}}; }

  Matrix transposed() {
    Matrix result{cols, rows};
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < cols; ++col) result.at(col, row) = at(row, col);
    }
    return result;
  }
};

// Integers around 0 without a simple pattern; a period that is prime fits no vector.
Matrix integers(std::int64_t rows, std::int64_t cols, std::int64_t period) {
  const std::int64_t centre = period / 2;
  Matrix matrix{rows, cols};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) {
      matrix.at(row, col) = static_cast<float>((3 * row + 7 * col + row * col) % period - centre);
    }
  }
  return matrix;
}

// Whether `out` is the product that `sizes` describe.
void check_elements(Matrix& out, Matrix& expected, const Sizes& sizes) {
  for (std::int64_t i = 0; i < sizes.m; ++i) {
    for (std::int64_t j = 0; j < sizes.n; ++j) {
      if (out.at(i, j) == expected.at(i, j)) continue;
      throw Error(
          fmt::format("the BLAS library ({}) is wrong on this processor: element ({}, {}) of a "
                      "[{}, {}] x [{}, {}] product is {}, not {}. Another kernel may be right: set "
                      "OPENBLAS_CORETYPE=Haswell",
                      blas_description(), i, j, sizes.m, sizes.k, sizes.k, sizes.n, out.at(i, j),
                      expected.at(i, j)));
    }
  }
}

void check_size(const Kernels& kernels, const Sizes& sizes) {
  Matrix a = integers(sizes.m, sizes.k, 11);
  Matrix b = integers(sizes.k, sizes.n, 13);
  Matrix a_transposed = a.transposed();
  Matrix b_transposed = b.transposed();
  Matrix expected{sizes.m, sizes.n};
  for (std::int64_t i = 0; i < sizes.m; ++i) {
    for (std::int64_t l = 0; l < sizes.k; ++l) {
      for (std::int64_t j = 0; j < sizes.n; ++j) expected.at(i, j) += a.at(i, l) * b.at(l, j);
    }
  }
  Matrix out{sizes.m, sizes.n};
  kernels.run(Matmul{.out = out.view(), .a = a.view(), .b = b.view()});
  check_elements(out, expected, sizes);
  kernels.run(Matmul{
      .out = out.view(), .a = a.view(), .b = b_transposed.view(), .transpose_b = Transpose::yes});
  check_elements(out, expected, sizes);
  Matrix sum{sizes.m, sizes.n};
  kernels.run(
      WeightGradient{.dweight = sum.view(), .dbias = {}, .dy = a_transposed.view(), .x = b.view()});
  check_elements(sum, expected, sizes);
}

}  // namespace

void check_products(const Kernels& kernels) {
  check_size(kernels, {37, 45, 53});
  check_size(kernels, {130, 137, 129});
}

}  // namespace redspine
