// One rank of a run that is only planned: all that Trainer would make of a configuration, on a
// device that records (trainer/plan/recording_device.h). What it would allocate is its memory; what
// its step would do is recorded by running it.
#pragma once

#include <memory>
#include <optional>

#include "model/gpt.h"
#include "parallel/mesh/gradient_reducer.h"
#include "parallel/mesh/parameter_gather.h"
#include "trainer/batch_feed.h"
#include "trainer/config.h"
#include "trainer/optimizer/optimizer.h"
#include "trainer/plan/memory_plan.h"
#include "trainer/plan/recording_device.h"
#include "trainer/plan/step_trace.h"
#include "trainer/spot_check.h"

namespace redspine {

class PlannedRank {
 public:
  /// `config` is valid for the size of `world`, which outlives this. Collective over a world that
  /// is there; local in one that is only thought of.
  PlannedRank(const Config& config, const ProcessGroup& world, DeviceKind kind);
  PlannedRank(const PlannedRank&) = delete;
  PlannedRank& operator=(const PlannedRank&) = delete;

  MemoryPlan memory();
  /// Of those beside which this one lies along the data axis; 0 where all have as many.
  int data_rank_with_most_moments();
  /// Of one training step, in a world that is only thought of.
  StepTraces record_step();

 private:
  void run_micro_batch(std::int64_t index);
  void run_update();

  Config config_;
  std::int64_t num_micro_batches_;  // of a step
  std::int64_t num_recorded_;       // of them: those that are alike once
  RecordingDevice device_;
  ProcessMesh mesh_;
  std::optional<LaneSums> lanes_;
  Gpt model_;
  std::int64_t model_bytes_;
  GradientReducer reducer_;
  std::int64_t reducer_bytes_;
  ParameterGather gather_;
  BatchFeed feed_;
  std::int64_t bytes_without_check_;
  std::unique_ptr<SpotCheck> spot_check_;
  std::int64_t bytes_without_optimizer_;
  Optimizer optimizer_;
};

}  // namespace redspine
