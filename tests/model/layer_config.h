// A model small enough for finite differences, whose sizes no number of ranks divides but for its
// six heads: uneven shares everywhere, and key/value heads that several ranks read.
#pragma once

#include "model/config.h"

namespace redspine::testing {

inline ModelConfig layer_config(Family family) {
  ModelConfig config = ModelConfig::preset(family);
  config.num_layers = 2;
  config.hidden_size = 24;
  config.num_heads = 6;
  config.num_kv_heads = 6;
  config.ffn_size = 37;
  config.vocab_size = 61;
  config.max_sequence_length = 12;
  config.rope.original_length = 12;
  return config;
}

}  // namespace redspine::testing
