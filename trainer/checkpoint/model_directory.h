// A model directory, ours or one of `transformers`: its configuration and its weights, found to fit
// each other. Local.
#pragma once

#include <string>
#include <vector>

#include "model/config.h"
#include "model/transformers/stored_tensors.h"
#include "trainer/checkpoint/format/tensor_files.h"

namespace redspine {

struct ModelDirectory {
  ModelConfig config;
  std::vector<StoredTensor> tensors;  // what `config` asks for, in the order of the network
  TensorFiles files;                  // has exactly these, under these names
};

/// Opens config.json and the weights, and checks each tensor's name, shape and type. ConfigError
/// with everything that is wrong.
ModelDirectory open_model(const std::string& directory);

/// ConfigError where `directory` is none, or has no weights in a form that can be read; with a hint
/// where it looks like a model of another form or place: a GGUF file, a single file of weights, a
/// name on the Hugging Face hub.
void check_is_model_directory(const std::string& directory);

/// Whether `directory` has files of this stem ("model" or "optimizer"), in either form.
bool has_tensor_files(const std::string& directory, const std::string& stem);

}  // namespace redspine
