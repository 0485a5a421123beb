// The learning rate as a pure function of the step: no state to save, nothing that resuming could
// get wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/optimizer/config.h"

namespace redspine {

/// Factor on the peak learning rate at `step` (the first is 1), between 0 and 1, for any step >= 1
/// and any warm-up >= 0. First a linear rise that reaches 1 at step `warmup_steps`; then, with p
/// from 0 there to 1 at `decay_steps` and beyond, and m = min_ratio:
/// constant: 1; linear: 1 - (1 - m) p; cosine: m + (1 - m) (1 + cos(pi p)) / 2 (arXiv 1608.03983);
/// wsd (warm-up, stable, decay; arXiv 2404.06395): 1, and over the last 20% of `decay_steps`
/// linearly down to m.
double schedule_factor(const ScheduleConfig& config, std::int64_t step);

/// A line: "learning rate: 30 warm-up steps to 0.0006, then cosine to 6e-05 at step 300".
std::string describe_schedule(const OptimizerConfig& optimizer, const ScheduleConfig& schedule);

/// What a valid schedule does in a run of `steps` that its author may not have meant.
std::vector<ConfigProblem> schedule_warnings(const OptimizerConfig& optimizer,
                                             const ScheduleConfig& schedule, std::int64_t steps);

}  // namespace redspine
