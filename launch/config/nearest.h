// "Did you mean": the known word that is fewest edits away from a mistyped one, where one is near.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redspine {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

/// "; nearest: WORD" with the word of `known` that is nearest to `word`, the first of equals. Empty
/// where it takes more edits than a third of the letters: a word that nobody meant only misleads.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

/// Likewise for keys with dots. A right name in a wrong section is near, and so is half a name:
/// "train.learning_rate" finds "optimizer.learning_rate", "schedule.warmup" finds
/// "schedule.warmup_steps", "model.layers" finds "model.num_layers".
std::string nearest_key(std::string_view key, const std::vector<std::string>& known);

}  // namespace redspine
