#include "tensor/cpu/blas_check.h"

#include <gtest/gtest.h>

#include <string>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/error.h"

namespace redspine {
namespace {

TEST(BlasCheck, AcceptsTheLibraryInUse) {
  const CpuKernels kernels;
  check_products([&](const Matmul& op) { kernels.run(op); });
}

TEST(BlasCheck, NamesTheVariableWhenOneElementOfALargeTransposedProductIsWrong) {
  const CpuKernels kernels;
  const auto broken = [&](const Matmul& op) {
    kernels.run(op);
    if (op.out.rows() > 100 && op.transpose_b == Transpose::yes)
      op.out.data<float>()[130 * 137 - 1] += 1;
  };
  try {
    check_products(broken);
    FAIL() << "a wrong product was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("element (129, 136)"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("OPENBLAS_CORETYPE"), std::string::npos);
  }
}

}  // namespace
}  // namespace redspine
