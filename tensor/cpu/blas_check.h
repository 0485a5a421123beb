// A check that the BLAS library multiplies correctly on this processor. A library older than its
// processor can choose kernels that give wrong products there, without any error.
#pragma once

#include "tensor/kernels.h"

namespace redspine {

/// Multiplies small integers, whose products are exact, in a size for a library's small-matrix path
/// and one beyond it, for every kind of product; about a millisecond. Throws Error on the
/// first wrong element, with the environment variable that makes OpenBLAS choose other kernels.
void check_products(const Kernels& kernels);

}  // namespace redspine
