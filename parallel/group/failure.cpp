#include "parallel/group/failure.h"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>

#include "tensor/printable.h"

namespace redspine {

void log_from_rank(const ProcessGroup& world, const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    all +=
        fmt::format("[rank {} @ {}] {}\n", world.rank(), ProcessGroup::host_name(), one_line(line));
  }
  // One write, so that the launcher does not mix the lines of several ranks.
  std::fwrite(all.data(), 1, all.size(), stderr);
}

void fail_together(const ProcessGroup& group, const std::string& failure) {
  const std::vector<std::string> of_ranks = group.all_gather(failure);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank].empty()) continue;
    const std::string host = group.all_gather(ProcessGroup::host_name())[rank];
    throw CollectiveError(fmt::format("rank {} @ {}: {}", rank, host, of_ranks[rank]));
  }
}

void run_together(const ProcessGroup& group, const std::function<void()>& action) {
  std::string failure;
  try {
    action();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  fail_together(group, failure);
}

}  // namespace redspine
