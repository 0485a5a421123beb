// A run from its first step to its last: trains, evaluates when it is time, and reports on the
// console and in metrics.jsonl. Collective over the world.
#pragma once

#include <string>

#include "trainer/trainer.h"

namespace redspine {

/// Where everything of a run lies: output_dir/name.
std::string run_directory(const RunConfig& config);
std::string metrics_path(const RunConfig& config);

/// Trains up to train.steps. Rank 0 writes metrics.jsonl to the run's directory, which exists, and
/// to standard output. Throws Error on every rank when the gradient stays non-finite.
void run_training(Trainer& trainer, const Config& config);

}  // namespace redspine
