// A run from where it starts to its last step, or to the one at which it is asked to stop: trains,
// evaluates and saves when it is time, and reports on the console and in metrics.jsonl. Collective
// over the world.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/resume.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/requests.h"
#include "trainer/trainer.h"

namespace redspine {

/// Where everything of a run lies: output_dir/name.
std::string run_directory(const RunConfig& config);
std::string metrics_path(const RunConfig& config);
/// The file by which a run knows its own: the same for all starts in a directory.
std::string run_id_path(const RunConfig& config);

/// What a run works with, besides its trainer. Borrowed.
struct RunServices {
  CheckpointSaver& saver;
  const CheckpointStore& store;
  RequestWatch& watch;
  std::function<void(const StepReport&)> on_step = {};  // is told of every step
};

/// What a run's records say about it.
struct RunIdentity {
  std::string run_id;
  std::vector<Setting> settings;
  DataFingerprint data;
  std::optional<ResumePoint> resumed;
};

enum class RunEnd { finished, stopped };

/// Trains up to train.steps and saves at the end. Stopped: with a checkpoint of the last step.
/// Rank 0 writes metrics.jsonl to the run's directory, which exists, and to standard output.
///
/// Nothing is saved after a step that was skipped: whether the weights are any good shows at the
/// next that is applied. A run that ends before sets aside what no applied step has shown to be
/// good, where an older checkpoint is left.
///
/// Throws CollectiveError when the gradient stays non-finite or is so at the last step, a
/// checkpoint cannot be written, or the directory is deleted; it is made again then, with a
/// checkpoint.
RunEnd run_training(Trainer& trainer, const Config& config, const RunIdentity& identity,
                    const RunServices& services);

}  // namespace redspine
