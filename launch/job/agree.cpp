#include "launch/job/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <vector>

namespace redspine {

ConfigError under_key(const std::string& key, const ConfigError& error) {
  std::vector<ConfigProblem> problems;
  for (const ConfigProblem& problem : error.problems()) {
    problems.push_back(
        {key, problem.key.empty() ? problem.text : problem.key + ": " + problem.text});
  }
  return ConfigError(std::move(problems));
}

void reject_on_all_ranks(const ProcessGroup& world, const std::string& problems) {
  const std::vector<std::string> of_ranks = world.all_gather(problems);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank].empty()) continue;
    if (static_cast<int>(rank) == world.rank()) log_from_rank(world, problems);
    throw Rejected{};
  }
}

void reject_unequal(const ProcessGroup& world, const char* what, const std::string& lines) {
  // Whole texts of many ranks only where they are needed.
  const std::vector<std::string> hashes =
      world.all_gather(std::to_string(std::hash<std::string>()(lines)));
  if (std::all_of(hashes.begin(), hashes.end(),
                  [&](const std::string& hash) { return hash == hashes.front(); })) {
    return;
  }
  const std::vector<std::string> texts = world.all_gather(lines);
  std::string problems;
  for (std::size_t rank = 0; rank < texts.size() && problems.empty(); ++rank) {
    std::istringstream mine(texts.front());
    std::istringstream theirs(texts[rank]);
    while (problems.empty() && (mine || theirs)) {
      std::string my_line;
      std::string their_line;
      std::getline(mine, my_line);
      std::getline(theirs, their_line);
      if (my_line == their_line) continue;
      problems = fmt::format("the {} differs between ranks: \"{}\" on rank 0, \"{}\" on rank {}",
                             what, my_line, their_line, rank);
    }
  }
  reject_on_all_ranks(world, problems);
}

}  // namespace redspine
