// Ranks in a message to people, with their hosts. Local.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace redspine {

/// "rank 3 @ node1", "ranks 3 @ node1, 5 @ node2"; of a long list the first few. `hosts` has the
/// name of each rank's.
std::string name_ranks(std::span<const int> ranks, const std::vector<std::string>& hosts);

}  // namespace redspine
