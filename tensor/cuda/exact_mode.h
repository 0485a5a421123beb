// Exact mode is the CPU's: what it asks of a kernel is refused here, where a configuration that
// asks for it on a GPU would have been refused before.
#pragma once

#include "tensor/error.h"

namespace redspine::cuda {

/// Throws Error where an operation is given an order of its sums.
inline void reject_order(const char* op, bool has_order) {
  if (has_order) throw Error(std::string(op) + ": sums in a given order are the CPU's alone");
}

}  // namespace redspine::cuda
