// The training of one model: steps and evaluations, from wherever a run stands. Collective over the
// world: every rank constructs a trainer with an equal configuration and makes the same calls.
// Writes nothing; training_run.h does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/dataset.h"
#include "data/prefetcher.h"
#include "model/gpt.h"
#include "parallel/mesh/gradient_reducer.h"
#include "parallel/mesh/parameter_gather.h"
#include "trainer/batch_feed.h"
#include "trainer/checkpoint/format/training_json.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/config.h"
#include "trainer/digest/replica_check.h"
#include "trainer/evaluator.h"
#include "trainer/fault_injection.h"
#include "trainer/optimizer/optimizer.h"
#include "trainer/report.h"
#include "trainer/spot_check.h"

namespace redspine {

/// The token files of a run, opened and checked. Local, and before anything is allocated; throws
/// ConfigError with everything that is wrong with them.
struct RunData {
  explicit RunData(const Config& config);

  TrainingData training;
  std::optional<ValidationData> validation;
};

class Trainer {
 public:
  /// `config` is valid for the size of `world`; the others outlive the trainer. It goes on from
  /// `progress`; after a step, weights and moments are zero until they are loaded into tensors().
  Trainer(const Config& config, RunData& data, const ProcessGroup& world, Device& device,
          const TrainingProgress& progress = {});

  /// One optimizer step, or, where the gradient is not finite on any rank, none on all of them.
  /// `mine` is what this rank has been asked; the ranks agree on it along the way.
  StepReport train_step(const Requests& mine = {});
  /// The validation loss at the present step; nothing where there is no validation data, or where
  /// `poll` reports on any rank whether the run has to stop.
  std::optional<ValidationReport> evaluate(const std::function<Requests()>& poll = {});

  std::int64_t step() const { return progress_.step; }
  const TrainingProgress& progress() const { return progress_; }
  /// All that changes with the steps, besides progress(); on the device. Waits for parameters that
  /// other ranks have updated, as do model() and the calls above: on all ranks or on none.
  TrainingTensors tensors();
  /// The digest of the weights after the last step, or as they were loaded or drawn. Collective,
  /// and costs a look at all weights, the first time after they were loaded. CollectiveError where
  /// ranks that hold the same differ.
  Digest weights_digest();
  /// Flips a bit in the step that it names: for tests.
  void inject(const BitFlip& fault) { fault_ = fault; }
  Gpt& model();
  const ProcessMesh& mesh() const { return mesh_; }

 private:
  std::vector<BlockObserver*> observers_of_step();
  ScalarSum squares_of_gradients();
  void update(double learning_rate, double gradient_scale);
  bool is_fault_due() const;
  void inject_now();
  void take_digests(std::vector<Digest> of_parts);

  Config config_;
  TrainingProgress progress_;
  Device& device_;
  ProcessMesh mesh_;
  std::int64_t num_micro_batches_;  // per rank and step
  std::optional<LaneSums> lanes_;   // exact mode
  Gpt model_;
  ReplicaCheck replicas_;
  std::unique_ptr<SpotCheck> spot_check_;  // null: none is ever due
  Optimizer optimizer_;
  GradientReducer reducer_;
  ParameterGather gather_;
  BatchFeed feed_;
  std::optional<Evaluator> evaluator_;
  Prefetcher prefetcher_;
  std::vector<Digest> value_digests_;  // of this rank's parts; empty: not known
  std::optional<Digest> weights_digest_;
  std::optional<BitFlip> fault_;
  std::optional<ActivationFlip> activation_fault_;
};

}  // namespace redspine
