// training.json: where a run stands, and how it was configured. Plain values; equal on all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/fingerprint.h"
#include "tensor/digest.h"

namespace redspine {

/// Everything of a trainer that is not a tensor.
struct TrainingProgress {
  std::int64_t step = 0;
  std::int64_t samples_consumed = 0;  // the state of the data
  std::int64_t tokens_consumed = 0;
  std::int64_t num_updates = 0;  // of the optimizer; skipped steps make none
  std::int64_t num_skipped_in_a_row = 0;
  bool is_evaluation_pending = false;  // a stop came before the evaluation of this step

  /// The newest one that changed the weights. What was saved before it is known to be good.
  std::int64_t last_applied_step() const { return step - num_skipped_in_a_row; }

  bool operator==(const TrainingProgress&) const = default;
};

/// A key of the configuration and its value as YAML text, in the order of the keys.
struct Setting {
  std::string key;  // in full: "optimizer.beta1"
  std::string value;

  bool operator==(const Setting&) const = default;
};

/// Of a checkpoint's tensors, whatever layout has written it.
struct StateDigests {
  Digest weights;  // of all together
  Digest exp_avg;
  Digest exp_avg_sq;
  std::map<std::string, Digest> tensors;  // by stored name

  bool operator==(const StateDigests&) const = default;
};

struct TrainingRecord {
  std::string run_id;
  TrainingProgress progress;
  int num_data_ranks = 1;
  int num_tensor_ranks = 1;
  std::vector<Setting> settings;
  DataFingerprint data = {};   // earlier versions did not save it
  std::optional<double> loss;  // of the last step
  std::optional<double> validation_loss;
  std::optional<StateDigests> digests = {};  // earlier versions did not save them
};

std::string training_to_json(const TrainingRecord& record);
/// ConfigError names `path` and what is wrong.
TrainingRecord training_from_json(std::string_view json, const std::string& path);
TrainingRecord read_training_record(const std::string& directory);

}  // namespace redspine
