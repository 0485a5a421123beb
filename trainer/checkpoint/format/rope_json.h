// Rotary positions in config.json: as `transformers` writes and reads them, and as our own models
// have them. Pure.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "trainer/checkpoint/format/json_reader.h"

namespace redspine {

/// Of a llama's config.json; ntk is in the theta.
double theta_for_transformers(const ModelConfig& config);
nlohmann::ordered_json rope_scaling_json(const RopeConfig& rope);
/// Of the config.json of a Llama of `transformers`, computed as it does. ConfigError for a kind, or
/// a key, that this program does not compute.
RopeConfig read_rope(const JsonReader& config, std::int64_t max_sequence_length);

nlohmann::ordered_json own_rope_json(const RopeConfig& rope);
RopeConfig read_own_rope(const JsonReader& rope);

}  // namespace redspine
