#include "launch/commands/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace redspine {

std::string format_table(const std::vector<Align>& columns,
                         const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(columns.size());
  for (const auto& row : rows) {
    assert(row.size() == columns.size());
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += columns[c] == Align::left ? fmt::format("{:<{}}  ", row[c], widths[c])
                                        : fmt::format("{:>{}}  ", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace redspine
