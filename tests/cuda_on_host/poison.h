// The bytes that mark memory nobody has written, and memory nobody may touch. In a build with
// AddressSanitizer the latter is also reported at the very access.
#pragma once

#include <cstddef>

namespace on_host {

/// Never-written memory: NaN in every floating-point type, -1 in every integer.
inline constexpr unsigned char kPoison = 0xff;
/// Guard zones: a huge number, and not the poison.
inline constexpr unsigned char kGuard = 0xfb;

void forbid(const void* memory, std::size_t bytes);
void permit(const void* memory, std::size_t bytes);

}  // namespace on_host
