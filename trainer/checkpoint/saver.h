// Writes checkpoints: whole tensors under their stored names, spread by bytes over all ranks. Each
// is gathered by the rank that writes it, one at a time, over the tensor axis, while the data
// replicas work on others; moments that are shared out over the data axis, over the world.
// Collective over the world, in the order of the calls.
//
// A checkpoint appears whole or not at all: written in a partial folder, synced, its manifest
// last, then renamed. A failure on any rank is one of all ranks, with its cause; checkpoints that
// were there stay.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "parallel/mesh/process_mesh.h"
#include "trainer/checkpoint/format/training_json.h"
#include "trainer/checkpoint/save_report.h"
#include "trainer/checkpoint/store.h"
#include "trainer/checkpoint/training_state.h"

namespace redspine {

enum class SaveMode { synchronous, asynchronous };

struct SaverOptions {
  ModelConfig model;
  SaveMode mode = SaveMode::asynchronous;
  Retention retention;
  bool check_replicas = true;  // what several ranks hold has to be the same on all
};

class CheckpointSaver {
 public:
  /// All but `options` and `store` are borrowed. In asynchronous mode allocates the snapshot: host
  /// memory as large as the parameters and moments of this rank.
  CheckpointSaver(SaverOptions options, CheckpointStore store, const ProcessMesh& mesh,
                  const ParameterStore& parameters, Device& device);
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;
  /// Waits for a save in the background, on all ranks.
  ~CheckpointSaver();

  /// Saves. Asynchronous: waits for the save before, takes a snapshot, and returns while it is
  /// written. Throws Error on every rank where this save (asynchronous: the one before) failed.
  void save(const TrainingTensors& tensors, const TrainingRecord& record);
  /// The checkpoints that have been published since the last call, in their order. Local.
  std::vector<SaveReport> take_published();
  /// Whether a save in the background has failed, as far as this rank knows. Local.
  bool has_failed() const;
  /// Returns once nothing is being written; throws what a save in the background failed with.
  void wait();
  /// Returns once nothing is being written, and lets go of what a save failed with, so that there
  /// can be another.
  void forget_failure();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace redspine
