// A model small enough for finite differences, whose sizes no number of ranks divides but for its
// six heads: uneven shares everywhere, and key/value heads that several ranks read.
#pragma once

#include "tests/support/tiny_model.h"

namespace redspine::testing {

inline ModelConfig layer_config(Family family) {
  return tiny_model(family, {.hidden_size = 24,
                             .num_heads = 6,
                             .num_kv_heads = 6,
                             .ffn_size = 37,
                             .vocab_size = 61,
                             .max_sequence_length = 12});
}

}  // namespace redspine::testing
