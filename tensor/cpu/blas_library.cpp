#include "tensor/blas_library.h"

#include <cblas-openblas.h>
#include <fmt/format.h>
#include <omp.h>

#include <sstream>
#include <string>

#include "tensor/address_space.h"
#include "tensor/error.h"
#include "tensor/loaded_library.h"

namespace redspine {
namespace {

// What OpenBLAS takes of the address space for each thread when it is opened. Where that is not to
// be had it asks for it again and again, for ever.
constexpr std::size_t kBytesPerThread = std::size_t{256} << 20;

const LoadedLibrary& library() {
  static const LoadedLibrary opened = [] {
    const std::size_t bytes = kBytesPerThread * static_cast<std::size_t>(omp_get_max_threads());
    if (!has_address_space(bytes)) {
      throw ConfigError("", fmt::format("OpenBLAS needs {} MiB of address space, more than this "
                                        "process may have (ulimit -v)",
                                        bytes >> 20));
    }
    return LoadedLibrary("libopenblas.so.0", "", "to compare with nothing");
  }();
  return opened;
}

struct Side {
  ConstTensorView view;
  CBLAS_TRANSPOSE transpose;
};

void multiply(TensorView out, std::int64_t inner, const Side& a, const Side& b, float beta) {
  const auto size = [](std::int64_t count) { return static_cast<blasint>(count); };
  call<&cblas_sgemm>(library, "cblas_sgemm", CblasRowMajor, a.transpose, b.transpose,
                     size(out.rows()), size(out.cols()), size(inner), 1.0F, a.view.data<float>(),
                     size(a.view.cols()), b.view.data<float>(), size(b.view.cols()), beta,
                     out.data<float>(), size(out.cols()));
}

}  // namespace

bool has_blas_library() {
  try {
    library();
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::string blas_description() {
  try {
    // The configuration reads "OpenBLAS 0.3.21 DYNAMIC_ARCH ...".
    std::istringstream words(call<&openblas_get_config>(library, "openblas_get_config"));
    std::string name;
    std::string version;
    words >> name >> version;
    return fmt::format("{} {}, {} kernels", name, version,
                       call<&openblas_get_corename>(library, "openblas_get_corename"));
  } catch (const ConfigError& error) {
    return error.problems().front().text;
  }
}

void run_by_blas_library(const Matmul& op) {
  const bool is_turned = op.transpose_b == Transpose::yes;
  multiply(op.out, op.a.cols(), {op.a, CblasNoTrans}, {op.b, is_turned ? CblasTrans : CblasNoTrans},
           0.0F);
}

void run_by_blas_library(const WeightGradient& op) {
  multiply(op.dweight, op.dy.rows(), {op.dy, CblasTrans}, {op.x, CblasNoTrans},
           op.update == Update::accumulate ? 1.0F : 0.0F);
}

}  // namespace redspine
