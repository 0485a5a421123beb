// All that a plan says of a run on so many ranks: memory, what is communicated and saved, and, on a
// machine that is described, time. Local, without MPI, GPU or data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config.h"
#include "trainer/plan/machine.h"
#include "trainer/plan/memory_plan.h"
#include "trainer/plan/schedule_check.h"
#include "trainer/plan/step_time.h"

namespace redspine {

struct RunTime {
  StepTime step;
  double tokens_per_second = 0.0;  // of all ranks
  double model_flops = 0.0;        // per second and rank
  double mfu = 0.0;                // of the machine's peak
  double save_seconds = 0.0;       // that one checkpoint is written in; 0: not known
  double run_seconds = 0.0;        // of all steps, and of saves that training waits for
};

struct RunPlan {
  MemoryPlan memory;
  AxisTraffic traffic;  // of a step, rank 0's
  std::int64_t checkpoint_bytes = 0;
  std::int64_t num_checkpoints = 0;  // that are written in the whole run
  std::optional<RunTime> time;
};

/// `config` is valid for `num_ranks`. Without a machine there is no time.
RunPlan plan_run(const Config& config, int num_ranks, DeviceKind kind,
                 const Machine* machine = nullptr);

/// The time alone, of a step that rank 0 has recorded.
RunTime time_of_run(const Config& config, int num_ranks, const Machine& machine,
                    const StepTraces& step, std::int64_t checkpoint_bytes);

/// Why a rank has no room for it on the machine, in a line; empty where it has.
std::string memory_problem(const MemoryPlan& memory, const Machine& machine);

/// Of one checkpoint: values and both moments in f32.
std::int64_t checkpoint_bytes(const ModelConfig& model);
std::int64_t num_checkpoints(const Config& config);

}  // namespace redspine
