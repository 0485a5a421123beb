// Columns of text for a terminal.
#pragma once

#include <string>
#include <vector>

namespace redspine {

enum class Align { left, right };

/// Rows of one cell per column, each column as wide as its widest cell, two spaces between.
std::string format_table(const std::vector<Align>& columns,
                         const std::vector<std::vector<std::string>>& rows);

}  // namespace redspine
