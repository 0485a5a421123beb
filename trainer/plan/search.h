// Every layout of a model on so many ranks of a machine: which fit, and how fast they would be.
// Local.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/plan/run_plan.h"

namespace redspine {

/// What a layout is made of; everything else is the configuration's.
struct Layout {
  std::int64_t tensor;
  std::int64_t micro_batch_size;
  Precision precision;
  Recompute recompute;
  OptimizerPlacement optimizer;
  bool sequence;

  Config applied_to(Config config) const;
};

struct PlannedLayout {
  Layout layout;
  MemoryPlan memory;  // rank 0's, which has no smaller share than others
  RunTime time;
};

/// Layouts that are not possible, with the reason in a line.
struct RejectedLayout {
  Layout layout;
  bool and_larger_micro_batches;  // these as well
  std::string reason;
};

struct LayoutSearch {
  std::vector<PlannedLayout> ranked;  // by tokens per second, the fastest first
  std::vector<RejectedLayout> rejected;
};

/// Varies what is in Layout, where that makes a difference. A layout that needs what this version
/// does not have is left out.
LayoutSearch search_layouts(const Config& config, int num_ranks, const Machine& machine);

}  // namespace redspine
