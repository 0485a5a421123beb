#include "launch/agree.h"

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

}  // namespace redspine
