#include "launch/agree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <vector>

namespace redspine {

std::string host_name() {
  std::string name(256, '\0');
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.substr(0, name.find('\0'));
}

void tell(const RankGroup& world, const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    all += fmt::format("[rank {} @ {}] {}\n", world.rank(), host_name(), line);
  }
  // One write, so that the launcher does not mix the lines of several ranks.
  std::fwrite(all.data(), 1, all.size(), stderr);
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
