// Steps of a run once more, compared with what the run has left of them: its lines in metrics.jsonl
// and the tensors of its checkpoints. Collective over the world; writes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/store.h"
#include "trainer/recorded_metrics.h"
#include "trainer/trainer.h"

namespace redspine {

/// What a run has left. Borrowed.
struct AuditedRun {
  const Config& config;  // as it ran
  const RecordedMetrics& metrics;
  const CheckpointStore& store;
  const std::vector<std::int64_t>& saved_steps;  // of the store, ascending
};

struct AuditResult {
  std::int64_t last_step = 0;            // that was replayed
  std::int64_t num_lines = 0;            // of metrics.jsonl that were compared
  std::vector<std::string> checkpoints;  // whose tensors were compared
  /// The first step that is not equal, in words, and then the first checkpoint, with its first
  /// tensor. None where all are equal.
  std::vector<std::string> differences;
};

/// Replays the steps up to `last` with `trainer`, which stands where the run stood before the first
/// of them. After one that is not equal it goes on to the next checkpoint of the run, if any up to
/// `last`, since that tells in which tensor. The same result on every rank.
AuditResult audit(Trainer& trainer, Device& device, const AuditedRun& run, std::int64_t last);

}  // namespace redspine
