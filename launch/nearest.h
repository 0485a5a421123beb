// "Did you mean": the known word that is fewest edits away from a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redspine {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

/// The word of `known` that is nearest to `word`; the first of equals. `known` is not empty.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

/// Likewise for keys with dots. A right name in a wrong section is near, and so is half a name:
/// "train.learning_rate" finds "optimizer.learning_rate", "schedule.warmup" finds
/// "schedule.warmup_steps".
std::string nearest_key(std::string_view key, const std::vector<std::string>& known);

}  // namespace redspine
