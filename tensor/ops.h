// The one door to the kernels: `ops::run(device, Matmul{...})` checks dtypes and shapes, then calls
// the device's kernel. A mismatch is an Error that names the operation and the shapes.
#pragma once

#include "tensor/device.h"
#include "tensor/kernels.h"

namespace redspine::ops {

#define REDSPINE_CHECK(Operation) void check(const Operation& op);
REDSPINE_FOR_EACH_OPERATION(REDSPINE_CHECK)
#undef REDSPINE_CHECK

template <class Op>
void run(const Device& device, const Op& op) {
  check(op);
  device.kernels().run(op);
}

}  // namespace redspine::ops
