// How a run begins, on all ranks together: its directory is taken and locked, what is there is
// looked at, and the place where training goes on is found. Collective over the world.
#pragma once

#include <memory>
#include <optional>

#include "launch/config/config_file.h"
#include "parallel/group/process_group.h"
#include "trainer/checkpoint/resume.h"
#include "trainer/checkpoint/run_lock.h"
#include "trainer/checkpoint/store.h"
#include "trainer/requests.h"

namespace redspine {

struct RunStart {
  std::unique_ptr<RunLock> lock;  // rank 0 has it
  CheckpointStore store;
  std::optional<ResumePoint> resumed;
  Requests requests;  // where they stop the run, it is to end without more ado
};

/// Makes the run's directory, or takes the one that is there, and finds and says where the run
/// starts, and what has changed since it was saved. Rejects on all ranks (agree.h) what the user
/// has to change; what was in the directory stays as it is. Asked to stop while it looks at a
/// checkpoint, the run does not start.
RunStart start_run(const ProcessGroup& world, const EffectiveConfig& effective,
                   RequestWatch& watch);

/// Once nothing can be rejected any more: writes the effective configuration, and clears away
/// what is in the way of training from there on.
void take_over_directory(const ProcessGroup& world, const EffectiveConfig& effective,
                         const RunStart& start);

/// The place where start_run would start the run, with nothing made, taken or changed; rejects
/// what it would, as far as that shows.
std::optional<ResumePoint> look_at_start(const ProcessGroup& world,
                                         const EffectiveConfig& effective);
/// On rank 0.
void log_start(const std::optional<ResumePoint>& resumed, const Config& config,
               const ProcessGroup& world);

}  // namespace redspine
