// What lies in a model directory, ours or one of `transformers`, in numbers for people. Reads all
// weights and moments once, for norms and digests. Local.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "trainer/checkpoint/format/element_type.h"
#include "trainer/checkpoint/format/training_json.h"

namespace redspine {

struct TensorSummary {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;
  std::int64_t count;  // elements
  double norm;         // Euclidean, over all elements; NaN for a type without real numbers
  std::optional<Digest> digest = {};  // of the values in f32; none where it does not fit the model
};

/// The tensors of one block, or of one place around the blocks.
struct LayerSummary {
  std::string name;  // "transformer.h.3"
  std::int64_t count;
  double norm;
};

struct CheckpointSummary {
  ModelConfig config;
  std::vector<TensorSummary> tensors;  // in the order of the network
  std::vector<LayerSummary> layers;
  std::int64_t num_optimizer_tensors = 0;
  std::int64_t tensor_bytes = 0;  // of model and optimizer
  std::optional<TrainingRecord> training;
  // Of all values, and of all moments, in f32; computed. None where a tensor is missing or does not
  // fit the model.
  std::optional<Digest> weights_digest = {};
  std::optional<Digest> exp_avg_digest = {};
  std::optional<Digest> exp_avg_sq_digest = {};

  std::int64_t num_parameters() const;
};

/// Takes tensors that do not fit the configuration as they are: it is for looking, not for loading.
/// ConfigError where there is no config.json or no safetensors file, or one is malformed.
CheckpointSummary summarize(const std::string& directory);

}  // namespace redspine
