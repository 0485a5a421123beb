#include "launch/config/nearest.h"

#include <algorithm>
#include <functional>

namespace redspine {
namespace {

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('.') + 1);  // npos + 1 is 0
}

/// How far a known word is, and how far one may be that was meant.
struct Distance {
  int edits;
  int limit;

  bool is_near() const { return edits <= limit; }
};

// Longer words than any known one are not looked at: the table of distances would be large.
constexpr std::size_t kMaxLength = 200;

int limit_of(std::string_view a, std::string_view b) {
  return static_cast<int>(std::max(a.size(), b.size())) / 3;
}

/// Half a name or more, from either end, is closer than its missing letters say.
bool is_part_of(std::string_view part, std::string_view whole) {
  return part.size() < whole.size() && 2 * part.size() >= whole.size() &&
         (whole.starts_with(part) || whole.ends_with(part));
}

std::string nearest(std::string_view word, const std::vector<std::string>& known,
                    const std::function<Distance(std::string_view)>& distance) {
  const std::string* best = nullptr;
  int least = 0;
  for (const std::string& other : known) {
    if (word.size() > kMaxLength) break;
    const Distance d = distance(other);
    if (!d.is_near() || (best != nullptr && d.edits >= least)) continue;
    best = &other;
    least = d.edits;
  }
  return best == nullptr ? "" : "; nearest: " + *best;
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
  return nearest(word, known, [&](std::string_view other) -> Distance {
    return {edit_distance(word, other), limit_of(word, other)};
  });
}

std::string nearest_key(std::string_view key, const std::vector<std::string>& known) {
  const std::string_view name = last_part(key);
  const std::string_view section = key.substr(0, key.size() - name.size());
  return nearest(key, known, [&](std::string_view other) -> Distance {
    const std::string_view other_name = last_part(other);
    const std::string_view other_section = other.substr(0, other.size() - other_name.size());
    const bool is_part = is_part_of(name, other_name) || is_part_of(other_name, name);
    const int edits = is_part ? 1 : edit_distance(name, other_name);
    return {edits + (section == other_section ? 0 : 1), limit_of(name, other_name)};
  });
}

}  // namespace redspine
