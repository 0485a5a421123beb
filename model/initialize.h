// Initial weights: each element is a function of (seed, parameter name, global position), so that
// every layout starts from the same bits.
#pragma once

#include <cstdint>

#include "model/parameters.h"

namespace redspine {

/// Draws every parameter from its spec's normal distribution and uploads it, to the working copy
/// too. Local.
void initialize_parameters(ParameterStore& store, std::uint64_t seed, Device& device);

}  // namespace redspine
