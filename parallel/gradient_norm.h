// The global gradient norm: every logical parameter counted once, whatever the layout.
#pragma once

#include <span>

#include "parallel/rank_group.h"
#include "tensor/device.h"

namespace redspine {

/// sqrt of the sum of squares over all parameters, in f64. `owned` are the gradients (already
/// added up over the data axis) that this rank counts; over the tensor axis they cover every
/// parameter exactly once. Collective over `tensor`; the same bits on every rank. A non-finite
/// gradient anywhere makes it non-finite on every rank.
double global_gradient_norm(Device& device, std::span<const ConstTensorView> owned,
                            const RankGroup& tensor);

}  // namespace redspine
