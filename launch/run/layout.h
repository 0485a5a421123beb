// How a configuration lies on the ranks of a job, in words: what `train --dry-run` shows.
#pragma once

#include <string>
#include <vector>

#include "trainer/config.h"

namespace redspine {

/// Ranks and their hosts, parameters per rank, and how a step's sequences are divided. `config` is
/// valid for that many hosts; `hosts` and `num_threads` are by rank.
std::string describe_layout(const Config& config, const std::vector<std::string>& hosts,
                            const std::vector<int>& num_threads);

}  // namespace redspine
