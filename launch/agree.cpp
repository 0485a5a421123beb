#include "launch/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <vector>

namespace redspine {

ConfigError under_key(const std::string& key, const ConfigError& error) {
  std::vector<Mistake> mistakes;
  for (const Mistake& mistake : error.mistakes()) {
    mistakes.push_back(
        {key, mistake.key.empty() ? mistake.text : mistake.key + ": " + mistake.text});
  }
  return ConfigError(std::move(mistakes));
}

void refuse_together(const RankGroup& world, const std::string& mistakes) {
  const std::vector<std::string> of_ranks = world.all_gather(mistakes);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank].empty()) continue;
    if (static_cast<int>(rank) == world.rank()) tell(world, mistakes);
    throw Refused{};
  }
}

void refuse_unequal(const RankGroup& world, const char* what, const std::string& lines) {
  // Whole texts of many ranks only where they are needed.
  const std::vector<std::string> hashes =
      world.all_gather(std::to_string(std::hash<std::string>()(lines)));
  if (std::all_of(hashes.begin(), hashes.end(),
                  [&](const std::string& hash) { return hash == hashes.front(); })) {
    return;
  }
  const std::vector<std::string> texts = world.all_gather(lines);
  std::string mistakes;
  for (std::size_t rank = 0; rank < texts.size() && mistakes.empty(); ++rank) {
    std::istringstream mine(texts.front());
    std::istringstream theirs(texts[rank]);
    while (mistakes.empty() && (mine || theirs)) {
      std::string my_line;
      std::string their_line;
      std::getline(mine, my_line);
      std::getline(theirs, their_line);
      if (my_line == their_line) continue;
      mistakes = fmt::format("the {} differs between ranks: \"{}\" on rank 0, \"{}\" on rank {}",
                             what, my_line, their_line, rank);
    }
  }
  refuse_together(world, mistakes);
}

}  // namespace redspine
