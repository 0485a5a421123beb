#include <cblas-openblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/error.h"

namespace redspine {
namespace {

blasint blas_size(std::int64_t size) {
  if (size > std::numeric_limits<blasint>::max()) {
    throw Error(fmt::format("Matmul: a dim of {} is beyond the BLAS library's limit of {}", size,
                            std::numeric_limits<blasint>::max()));
  }
  return static_cast<blasint>(size);
}

CBLAS_TRANSPOSE blas_transpose(Transpose transpose) {
  return transpose == Transpose::yes ? CblasTrans : CblasNoTrans;
}

}  // namespace

void CpuKernels::run(const Matmul& op) const {
  const std::int64_t m = op.out.rows();
  const std::int64_t n = op.out.cols();
  const std::int64_t k = op.transpose_a == Transpose::yes ? op.a.rows() : op.a.cols();
  if (m == 0 || n == 0) return;
  float* out = op.out.data<float>();
  if (k == 0) {
    if (op.update == Update::write) std::fill_n(out, m * n, 0.0F);
    return;
  }
  const float beta = op.update == Update::accumulate ? 1.0F : 0.0F;
  cblas_sgemm(CblasRowMajor, blas_transpose(op.transpose_a), blas_transpose(op.transpose_b),
              blas_size(m), blas_size(n), blas_size(k), 1.0F, op.a.data<float>(),
              blas_size(op.a.cols()), op.b.data<float>(), blas_size(op.b.cols()), beta, out,
              blas_size(n));
}

}  // namespace redspine
