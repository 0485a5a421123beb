// Whether this process computes with denormal numbers as IEEE 754 has them. A library may have
// switched that off for a thread, which changes results in silence.
#pragma once

namespace redspine {

/// Throws Error where a thread of the OpenMP team takes denormal numbers as zeros, as an operand or
/// as a result.
void require_denormals();

}  // namespace redspine
