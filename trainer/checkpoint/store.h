// The checkpoints folder of a run: which checkpoints it has, and which of them go. Local; rank 0
// calls what changes it. Order is by step number, never by time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/format/training_json.h"

namespace redspine {

/// Which checkpoints stay once a newer one is there.
struct Retention {
  std::int64_t keep = 3;        // newest so many; 0 = all
  std::int64_t keep_every = 0;  // steps that are multiples of it stay for ever; 0 = none
  std::optional<std::string> resumed_from;  // a directory that stays in any case
};

class CheckpointStore {
 public:
  /// `run_id` distinguishes what this run wrote from what others did.
  CheckpointStore(std::string folder, std::string run_id);

  const std::string& folder() const { return folder_; }
  const std::string& run_id() const { return run_id_; }

  /// Steps of all folders named as checkpoints are, ascending. Complete or not.
  std::vector<std::int64_t> steps() const;
  std::string path_of(std::int64_t step) const;  // FOLDER/step_00000500
  /// Where a save is written before it is published; the name shows the run that owns it.
  std::string partial_path_of(std::int64_t step) const;

  /// Makes an empty partial folder, in place of one that an earlier save of this run left.
  std::string begin(std::int64_t step) const;
  /// Names the partial folder as a checkpoint and makes that durable.
  void publish(std::int64_t step) const;
  /// Renames step_N to step_N.aside-K, so that it is lost to nobody and in nobody's way.
  /// Returns the new path.
  std::string set_aside(std::int64_t step) const;
  /// Of the checkpoints that are older than `step`, the newest.
  std::optional<std::int64_t> newest_before(std::int64_t step) const;
  /// Paths of what `retention` does not keep, now that `newest` is saved: of the checkpoints up to
  /// it, and of those set aside, which go when `keep` newer ones have come as far. Leaves out
  /// the newest checkpoint after which a step was applied, whatever another run wrote, and folders
  /// that hold anything foreign.
  std::vector<std::string> superseded(const TrainingProgress& newest,
                                      const Retention& retention) const;
  /// Deletes a checkpoint, in its place or set aside.
  void remove(const std::string& path) const;
  /// Deletes what unfinished saves of this run left behind; returns their paths.
  std::vector<std::string> remove_stale_partials() const;

 private:
  bool is_ours_alone(const std::string& path) const;
  std::vector<std::string> superseded_asides(const std::vector<std::int64_t>& ours,
                                             std::int64_t keep) const;

  std::string folder_;
  std::string run_id_;
};

}  // namespace redspine
