#include "tensor/cpu/blas_check.h"

#include <gtest/gtest.h>

#include <string>

#include "tensor/cpu/cpu_kernels.h"
#include "tensor/error.h"

namespace redspine {
namespace {

TEST(BlasCheck, AcceptsTheLibraryInUse) { check_products(CpuKernels()); }

class BrokenKernels final : public CpuKernels {
 public:
  using CpuKernels::run;
  void run(const Matmul& op) const override {
    CpuKernels::run(op);
    if (op.out.rows() > 100 && op.transpose_b == Transpose::yes)
      op.out.data<float>()[130 * 137 - 1] += 1;
  }
};

TEST(BlasCheck, NamesTheVariableWhenOneElementOfALargeTransposedProductIsWrong) {
  try {
    check_products(BrokenKernels());
    FAIL() << "a wrong product was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("element (129, 136)"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("OPENBLAS_CORETYPE"), std::string::npos);
  }
}

}  // namespace
}  // namespace redspine
