// The model of the tests: two layers, of any family, in the sizes that a test asks for.
#pragma once

#include <cstdint>

#include "model/config.h"

namespace redspine::testing {

struct TinySizes {
  std::int64_t num_layers = 2;
  std::int64_t hidden_size = 32;
  std::int64_t num_heads = 4;
  std::int64_t num_kv_heads = 4;
  std::int64_t ffn_size = 48;
  std::int64_t vocab_size = 257;
  std::int64_t max_sequence_length = 16;
};

/// Everything else is the family's own.
inline ModelConfig tiny_model(Family family, const TinySizes& sizes = {}) {
  ModelConfig model = ModelConfig::preset(family);
  model.num_layers = sizes.num_layers;
  model.hidden_size = sizes.hidden_size;
  model.num_heads = sizes.num_heads;
  model.num_kv_heads = sizes.num_kv_heads;
  model.ffn_size = sizes.ffn_size;
  model.vocab_size = sizes.vocab_size;
  model.max_sequence_length = sizes.max_sequence_length;
  model.rope.original_length = sizes.max_sequence_length;
  return model;
}

}  // namespace redspine::testing
