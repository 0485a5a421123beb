// The training of one model: steps and evaluations. Collective over the world: every rank
// constructs a trainer with an equal configuration and makes the same calls. Writes nothing;
// training_run.h does.
#pragma once

#include <optional>
#include <vector>

#include "data/dataset.h"
#include "data/prefetcher.h"
#include "model/gpt.h"
#include "parallel/gradient_reducer.h"
#include "trainer/batch_feed.h"
#include "trainer/config.h"
#include "trainer/evaluator.h"
#include "trainer/optimizer.h"
#include "trainer/report.h"

namespace redspine {

/// The token files of a run, opened and checked. Local, and before anything is allocated; throws
/// ConfigError with everything that is wrong with them.
struct RunData {
  explicit RunData(const Config& config);
  /// A line for each file.
  std::string describe() const;

  TrainingData training;
  std::optional<ValidationData> validation;
};

class Trainer {
 public:
  /// `config` is valid for the size of `world`; the others outlive the trainer.
  Trainer(const Config& config, RunData& data, const RankGroup& world, Device& device);

  /// One optimizer step, or, where the gradient is not finite on any rank, none on all of them.
  StepReport train_step();
  /// The validation loss at the present step; nothing where there is no validation data.
  std::optional<ValidationReport> evaluate();

  std::int64_t step() const { return step_; }
  Gpt& model() { return model_; }
  const ProcessMesh& mesh() const { return mesh_; }

 private:
  Config config_;
  Device& device_;
  ProcessMesh mesh_;
  std::int64_t num_micro_batches_;  // a rank and step
  Gpt model_;
  Optimizer optimizer_;
  GradientReducer reducer_;
  BatchFeed feed_;
  std::optional<Evaluator> evaluator_;
  Prefetcher prefetcher_;
  std::int64_t step_ = 0;
};

}  // namespace redspine
