#include "tensor/denormals.h"

#include <gtest/gtest.h>

#include <thread>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "tensor/device.h"
#include "tensor/error.h"

namespace redspine {
namespace {

TEST(RequireDenormals, IsSatisfiedByDefault) { EXPECT_NO_THROW(require_denormals()); }

#ifdef __SSE__
// Bits of the control register: denormal results, and denormal operands.
constexpr unsigned kFlushToZero = 0x8000;
constexpr unsigned kDenormalsAreZero = 0x0040;

TEST(RequireDenormals, FindsEitherSwitchInAnyThread) {
  const auto device = make_cpu_device(2);
  const std::thread::id self = std::this_thread::get_id();
  for (const unsigned bit : {kFlushToZero, kDenormalsAreZero}) {
    for (const bool is_self : {true, false}) {
      const auto flip = [&] {
#pragma omp parallel
        if ((std::this_thread::get_id() == self) == is_self) _mm_setcsr(_mm_getcsr() ^ bit);
      };
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
