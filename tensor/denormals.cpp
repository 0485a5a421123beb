#include "tensor/denormals.h"

#include <fmt/format.h>

#include "tensor/error.h"

namespace redspine {
namespace {

// Volatile, or the compiler would compute it.
bool keeps_denormals() {
  volatile float least_normal = 0x1p-126F;
  volatile float denormal = least_normal * 0.5F;  // flushed as a result
  volatile float twice = denormal * 2.0F;         // taken as zero as an operand
  return twice == least_normal;
}

}  // namespace

void require_denormals() {
  int num_without = 0;
  int num_threads = 0;
#pragma omp parallel reduction(+ : num_without, num_threads)
  {
    ++num_threads;
    num_without += keeps_denormals() ? 0 : 1;
  }
  if (num_without == 0) return;
  throw Error(
      fmt::format("{} of {} threads take denormal numbers as zeros (FTZ or DAZ is set), which "
                  "run.exact does not allow: a library that this process has loaded did it",
                  num_without, num_threads));
}

}  // namespace redspine
