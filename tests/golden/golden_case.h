// A golden case on disk (see make_golden.py): a tiny model, ten batches, and what transformers and
// torch compute for them in float64. Local; a case owns its values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "tests/support/safetensors.h"
#include "trainer/config.h"

namespace redspine::testing {

struct GoldenStep {
  double learning_rate;
  double loss;           // mean over the batch's tokens, before the update
  double gradient_norm;  // global, before clipping
};

struct GoldenCase {
  std::string name;
  ModelConfig model;
  OptimizerConfig optimizer;  // learning_rate is unset: each step has its own
  std::vector<GoldenStep> steps;
  std::int64_t batch_size;       // B
  std::int64_t sequence_length;  // T
  StoredTensors tensors;

  /// A step's batch, [B][T].
  std::span<const std::int32_t> tokens(std::size_t step) const;
  std::span<const std::int32_t> targets(std::size_t step) const;
  /// "initial", "gradient" or "final" of a parameter. Throws where the case has no such parameter.
  const StoredTensor& parameter(std::string_view what, std::string_view name) const;
  /// The model's parameters, by name.
  std::vector<std::string> parameter_names() const;
};

/// All cases that make_golden.py writes.
std::vector<std::string> golden_case_names();

GoldenCase read_golden_case(const std::string& name);

/// A rope configuration in the keys of the YAML file.
RopeConfig parse_rope(const std::string& json);

/// The text of a file of the golden folder.
std::string read_golden_text(const std::string& file_name);

}  // namespace redspine::testing
