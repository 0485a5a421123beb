// A model small enough for finite differences, whose sizes no number of ranks divides but for its
// six heads: uneven shares everywhere, and key/value heads that several ranks read.
#pragma once

#include <optional>

#include "model/rope.h"
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

/// The rotary positions of a layer, or none, as the configuration says.
inline std::optional<RopeTable> rope_of_layer(Device& device, const ModelConfig& config,
                                              std::int64_t length) {
  if (config.position != Position::rope) return std::nullopt;
  return make_rope_table(device, config, length);
}

}  // namespace redspine::testing
