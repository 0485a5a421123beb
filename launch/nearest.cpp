#include "launch/nearest.h"

#include <algorithm>
#include <functional>

namespace redspine {
namespace {

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('.') + 1);  // npos + 1 is 0
}

std::string minimum_by(const std::vector<std::string>& known,
                       const std::function<int(std::string_view)>& distance) {
  return *std::min_element(
      known.begin(), known.end(),
      [&](const std::string& a, const std::string& b) { return distance(a) < distance(b); });
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table of distances between prefixes: of a[0, i - 1), a[0, i) and a[0, i + 1).
  std::vector<int> before(b.size() + 1);
  std::vector<int> above(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j + 1] + 1, row[j] + 1, above[j] + (a[i] == b[j] ? 0 : 1)});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  return minimum_by(known, [&](std::string_view other) { return edit_distance(word, other); });
}

std::string nearest_key(std::string_view key, const std::vector<std::string>& known) {
  return minimum_by(known, [&](std::string_view other) {
    const std::string_view name = last_part(key);
    const std::string_view other_name = last_part(other);
    const bool is_same_section = key.substr(0, key.size() - name.size()) ==
                                 other.substr(0, other.size() - other_name.size());
    // Half a name is closer than its missing letters say.
    const bool is_part = other_name.starts_with(name) || name.starts_with(other_name);
    const int name_distance = is_part && name != other_name ? 1 : edit_distance(name, other_name);
    return std::min(edit_distance(key, other), name_distance + (is_same_section ? 0 : 1));
  });
}

}  // namespace redspine
