// A run that is over, or goes on elsewhere, as its directory tells of it: where some of its steps
// can be replayed from, and how they were run. Reads only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/config/config_file.h"
#include "trainer/checkpoint/resume.h"
#include "trainer/recorded_metrics.h"

namespace redspine {

/// Steps of a run, from 1.
struct StepRange {
  std::int64_t first;
  std::int64_t last;

  std::string to_string() const;  // "step 5", "steps 5 to 8"
};

struct RecordedRun {
  std::string directory;
  CheckpointStore store;
  RecordedMetrics metrics;
  std::optional<ResumePoint> start;  // its newest checkpoint before the steps, if any
  /// How the steps after the start were run, as the checkpoints after it tell, up to the first that
  /// has them all, or else the start itself; none where there is no checkpoint.
  std::vector<TrainingRecord> records;
};

/// `saved_steps` are those of its checkpoints, ascending. ConfigError where `directory` is no
/// run's, or has not had these steps or recorded nothing of them. Local.
RecordedRun read_recorded_run(const std::string& directory,
                              const std::vector<std::int64_t>& saved_steps, const StepRange& steps);

/// Its configuration with `settings` above it, for `world_size` ranks, without evaluations.
/// ConfigError where they make it another run or, unless it is exact, another layout, and where the
/// run itself changed either amid the steps. Local.
EffectiveConfig replay_config(const RecordedRun& run, const std::vector<std::string>& settings,
                              int world_size);

/// The checkpoint that the steps from `first` on are replayed from: one of the run, or the one that
/// it went on from; nothing: it begins with new weights. Local.
std::optional<ResumePoint> replay_start(const RecordedRun& run, const Config& config,
                                        std::int64_t first);

}  // namespace redspine
