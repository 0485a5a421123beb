// A model alone, out of a directory of ours or of `transformers` into a new one that both open:
// config.json, one model.safetensors under the names of `transformers`, and what is there of
// tokenizer and generation settings. Local.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "trainer/checkpoint/format/element_type.h"

namespace redspine {

struct Conversion {
  std::string source;
  std::string output;                    // does not exist yet, or is an empty directory
  std::optional<ElementType> type = {};  // f32, bf16 or f16; nothing: each as it is stored
  bool writes_manifest = true;           // false: nothing vouches for what nobody has verified
};

struct ConversionReport {
  ModelConfig config;
  std::int64_t num_tensors = 0;
  std::int64_t num_parameters = 0;
  std::int64_t bytes = 0;                // of model.safetensors
  std::vector<std::string> copied = {};  // files beside the model, by name
};

/// The directory appears whole or not at all. Holds one tensor at a time. Equal
/// types keep every bit. ConfigError for a source that is no model or holds a number that is not
/// finite, for a number too large for the type, and for an output that is there or that another
/// process writes; Error where writing fails.
ConversionReport convert_model(const Conversion& conversion);

}  // namespace redspine
