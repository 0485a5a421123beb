#include "tensor/denormals.h"

#include <gtest/gtest.h>
#include <omp.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "tensor/error.h"

namespace redspine {
namespace {

TEST(RequireDenormals, IsSatisfiedByDefault) { EXPECT_NO_THROW(require_denormals()); }

#ifdef __SSE__
// Bits of the control register: denormal results, and denormal operands.
constexpr unsigned kFlushToZero = 0x8000;
constexpr unsigned kDenormalsAreZero = 0x0040;

TEST(RequireDenormals, FindsEitherSwitchInAnyThread) {
  for (const unsigned bit : {kFlushToZero, kDenormalsAreZero}) {
    for (int thread = 0; thread < 2; ++thread) {
      const auto flip = [&] {
#pragma omp parallel num_threads(2)
        if (omp_get_thread_num() == thread) _mm_setcsr(_mm_getcsr() ^ bit);
      };
      omp_set_num_threads(2);
      flip();
      EXPECT_THROW(require_denormals(), Error);
      flip();
      EXPECT_NO_THROW(require_denormals());
    }
  }
}
#endif

}  // namespace
}  // namespace redspine
