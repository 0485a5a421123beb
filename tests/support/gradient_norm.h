// The global gradient norm in one call, as the trainer puts it together along its reductions.
#pragma once

#include <cmath>
#include <span>

#include "parallel/group/process_group.h"
#include "parallel/mesh/gradient_norm.h"

namespace redspine::testing {

/// Collective over `tensor`; the same bits on every rank.
inline double global_gradient_norm(Device& device, std::span<const ConstTensorView> owned,
                                   const ProcessGroup& tensor) {
  return std::sqrt(tensor.all_reduce(sum_of_squares(device, owned), ReduceOp::sum));
}

}  // namespace redspine::testing
