// From the files of a model directory to this rank's share of the parameters and moments. Every
// rank reads for itself, and only what it holds. Local.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/transformers/stored_tensors.h"
#include "trainer/checkpoint/format/tensor_files.h"
#include "trainer/checkpoint/keep_going.h"
#include "trainer/checkpoint/training_state.h"

namespace redspine {

/// Throws ConfigError with the first tensors, and how many more, that are missing, superfluous or
/// of another shape in `files`, compared with `tensors` under the prefix of `part`: name, both
/// shapes, file. Tensors of other prefixes are not looked at.
void check_tensors(const TensorFiles& files, std::span<const StoredTensor> tensors, StatePart part);

/// Where a model is read to. Borrowed.
struct LoadTarget {
  ParameterStore& store;
  Device& device;
  KeepGoing keep_going = {};
};

/// Model and moments of a checkpoint, checked first. ConfigError as above.
void load_state(const std::string& directory, const ModelConfig& config,
                const TrainingTensors& tensors, const LoadTarget& target);
/// Throws ConfigError where the weights of a model directory are not those of the configuration's
/// model: under the keys that its config.json says otherwise, or with the tensors that do not fit.
void check_weights(const std::string& directory, const ModelConfig& config);
/// The weights alone, checked first, of any model directory (ours or transformers').
void load_weights(const std::string& directory, const ModelConfig& config,
                  const LoadTarget& target);

}  // namespace redspine
