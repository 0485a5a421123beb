// Where a run starts: from its newest good checkpoint, from one that the user names, or from
// nothing. Collective over the world; all ranks come to the same answer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "trainer/checkpoint/format/training_json.h"
#include "trainer/checkpoint/store.h"
#include "trainer/checkpoint/verify.h"

namespace redspine {

struct ResumePoint {
  std::string directory;
  TrainingRecord record;
};

struct ResumeOptions {
  std::string resume = "auto";  // auto | none | a directory
  Verification verification = Verification::full;
  KeepGoing keep_going = {};
};

/// auto: the newest checkpoint of the store that verifies, before any that was saved while steps
/// were skipped; `warn` is told, on rank 0, of each that is skipped and why. ConfigError on every
/// rank
/// ("checkpoint.resume"): a directory that is missing or damaged, a store of which no checkpoint
/// verifies, and ranks that see different files. none, or an empty store: nothing. Cut short on
/// any rank, it returns what nobody has verified.
std::optional<ResumePoint> find_resume_point(const ResumeOptions& options,
                                             const CheckpointStore& store,
                                             const ProcessGroup& world,
                                             const std::function<void(const std::string&)>& warn);

}  // namespace redspine
