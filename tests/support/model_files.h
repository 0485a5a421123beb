// Small models as `transformers` leaves them on disk, made by hand. Local.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/config.h"
#include "trainer/checkpoint/format/element_type.h"

namespace redspine::testing {

enum class Names {
  full,       // "transformer.h.0.ln_1.weight"
  of_the_hub  // "h.0.ln_1.weight", with the mask of each block, as the first GPT-2 is published
};

struct ModelFiles {
  ModelConfig config;
  ElementType type = ElementType::f32;
  int num_files = 1;
  Names names = Names::full;
};

/// The bytes of every tensor under its full name, parameters alone.
using TensorBytes = std::map<std::string, std::string>;

/// Writes config.json and the weights, which have no order, to a new directory.
TensorBytes write_model(const std::string& directory, const ModelFiles& model);
/// Everything in the safetensors files of a model.
TensorBytes read_model_bytes(const std::string& directory);

/// The tiny model, of at most 24 tokens.
ModelConfig small_model(Family family, std::int64_t vocab_size);

}  // namespace redspine::testing
