#include "trainer/digest/named_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace redspine {

std::string name_ranks(std::span<const int> ranks, const std::vector<std::string>& hosts) {
  // A list that is longer says nothing new.
  constexpr std::size_t kMaxRanks = 8;
  std::vector<std::string> texts;
  for (const int rank : ranks.first(std::min(ranks.size(), kMaxRanks))) {
    texts.push_back(fmt::format("{} @ {}", rank, hosts[static_cast<std::size_t>(rank)]));
  }
  if (ranks.size() > kMaxRanks) texts.push_back(fmt::format("{} more", ranks.size() - kMaxRanks));
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(texts, ", "));
}

}  // namespace redspine
