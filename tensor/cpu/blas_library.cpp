#include "tensor/blas_library.h"

#include <cblas-openblas.h>
#include <fmt/format.h>

#include <sstream>
#include <string>

namespace redspine {
namespace {

struct Side {
  ConstTensorView view;
  CBLAS_TRANSPOSE transpose;
};

void multiply(TensorView out, std::int64_t inner, const Side& a, const Side& b, float beta) {
  const auto size = [](std::int64_t count) { return static_cast<blasint>(count); };
  cblas_sgemm(CblasRowMajor, a.transpose, b.transpose, size(out.rows()), size(out.cols()),
              size(inner), 1.0F, a.view.data<float>(), size(a.view.cols()), b.view.data<float>(),
              size(b.view.cols()), beta, out.data<float>(), size(out.cols()));
}

}  // namespace

void run_by_blas_library(const Matmul& op) {
  const bool is_turned = op.transpose_b == Transpose::yes;
  multiply(op.out, op.a.cols(), {op.a, CblasNoTrans}, {op.b, is_turned ? CblasTrans : CblasNoTrans},
           0.0F);
}

void run_by_blas_library(const WeightGradient& op) {
  multiply(op.dweight, op.dy.rows(), {op.dy, CblasTrans}, {op.x, CblasNoTrans},
           op.update == Update::accumulate ? 1.0F : 0.0F);
}

std::string blas_description() {
  // The configuration reads "OpenBLAS 0.3.21 DYNAMIC_ARCH ...".
  std::istringstream words(openblas_get_config());
  std::string name;
  std::string version;
  words >> name >> version;
  return fmt::format("{} {}, {} kernels", name, version, openblas_get_corename());
}

}  // namespace redspine
