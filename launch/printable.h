// Text of any bytes as one line that a terminal shows and nothing else.
#pragma once

#include <string>
#include <string_view>

namespace redspine {

/// `text` in quotes, with line breaks, tabs, quotes and backslashes escaped as in C, and so are, as
/// \xHH, control characters and bytes that are no UTF-8.
std::string printable(std::string_view text);

}  // namespace redspine
