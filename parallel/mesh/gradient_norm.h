// The global gradient norm: every logical parameter counted once, whatever the layout.
#pragma once

#include <span>

#include "tensor/device.h"

namespace redspine {

/// This rank's summand of the squared norm, in f64. `owned` are the gradients (already added up
/// over the data axis) that this rank counts; over the tensor axis they cover every parameter
/// exactly once, so that the root of the ranks' sum is the norm. A non-finite gradient makes it
/// non-finite. Local.
double sum_of_squares(Device& device, std::span<const ConstTensorView> owned);

}  // namespace redspine
