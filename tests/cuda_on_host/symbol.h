// The name of a function of this program by its address, for messages.
#pragma once

#include <string>

namespace on_host {

/// Demangled; also of functions that no dynamic symbol table lists, such as kernels in an unnamed
/// namespace. The address as text where the program was stripped.
std::string symbol_name(const void* function);

}  // namespace on_host
