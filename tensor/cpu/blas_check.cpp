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

void check_size(const std::function<void(const Matmul&)>& matmul, const Sizes& sizes) {
  Matrix a[] = {integers(sizes.m, sizes.k, 11), {}};
  Matrix b[] = {integers(sizes.k, sizes.n, 13), {}};
  a[1] = a[0].transposed();
  b[1] = b[0].transposed();
  Matrix expected{sizes.m, sizes.n};
  for (std::int64_t i = 0; i < sizes.m; ++i) {
    for (std::int64_t l = 0; l < sizes.k; ++l) {
      for (std::int64_t j = 0; j < sizes.n; ++j) {
        expected.at(i, j) += a[0].at(i, l) * b[0].at(l, j);
      }
    }
  }
  for (const int turn_a : {0, 1}) {
    for (const int turn_b : {0, 1}) {
      Matrix out{sizes.m, sizes.n};
      const Matmul write{.out = out.view(),
                         .a = a[turn_a].view(),
                         .b = b[turn_b].view(),
                         .transpose_a = turn_a == 1 ? Transpose::yes : Transpose::no,
                         .transpose_b = turn_b == 1 ? Transpose::yes : Transpose::no,
                         .update = Update::write};
      Matmul accumulate = write;
      accumulate.update = Update::accumulate;
      matmul(write);
      matmul(accumulate);
      for (std::int64_t i = 0; i < sizes.m; ++i) {
        for (std::int64_t j = 0; j < sizes.n; ++j) {
          if (out.at(i, j) == 2 * expected.at(i, j)) continue;
          throw Error(fmt::format(
              "the BLAS library ({}) is wrong on this processor: element ({}, {}) of twice a "
              "[{}, {}] x [{}, {}] product is {}, not {}. Another kernel may be right: set "
              "OPENBLAS_CORETYPE=Haswell",
              blas_description(), i, j, sizes.m, sizes.k, sizes.k, sizes.n, out.at(i, j),
              2 * expected.at(i, j)));
        }
      }
    }
  }
}

}  // namespace

void check_products(const std::function<void(const Matmul&)>& matmul) {
  check_size(matmul, {37, 45, 53});
  check_size(matmul, {130, 137, 129});
}

}  // namespace redspine
