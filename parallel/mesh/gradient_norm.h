// The global gradient norm: every logical parameter counted once, whatever the layout.
#pragma once

#include <span>

#include "tensor/device.h"
#include "tensor/exact_sum.h"
#include "tensor/kernels.h"

namespace redspine {

/// This rank's summand of the squared norm, in f64. `owned` are the gradients (already added up
/// over the data axis) that this rank counts; over the tensor axis they cover every parameter
/// exactly once, so that the root of the ranks' sum is the norm. A non-finite gradient makes it
/// non-finite. Local.
double sum_of_squares(Device& device, std::span<const ConstTensorView> owned);
/// The same for exact mode, in pieces that no layout cuts, by a sum that no order enters.
ExactSum exact_sum_of_squares(Device& device, std::span<const SquaresPart> owned);

}  // namespace redspine
