// config.json: a model's configuration as `transformers` reads it, and back. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "trainer/checkpoint/format/training_json.h"

namespace redspine {

/// model_type gpt2 or llama where `transformers` computes the same function, else redspine.
std::string model_to_json(const ModelConfig& config);

/// Every option by its key in a run's configuration ("model.rope.theta"), as text.
std::vector<Setting> model_options(const ModelConfig& config);

/// From one of ours, or a GPT-2 or Llama of `transformers`. ConfigError names `path`, the key, what
/// was read and what is legal; options that this program does not compute are problems.
ModelConfig model_from_json(std::string_view json, const std::string& path);
/// Of the config.json in a model directory.
ModelConfig read_model_config(const std::string& directory);

}  // namespace redspine
