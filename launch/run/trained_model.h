// The model directory that `sample` and `evaluate` are given, ours or one of `transformers`: what
// it is, and which tokenizer its token ids are from. Local.
#pragma once

#include <optional>
#include <string>

#include "model/config.h"
#include "tensor/device.h"
#include "trainer/checkpoint/format/training_json.h"
#include "trainer/config.h"

namespace redspine {

struct TrainedModel {
  std::string directory;
  ModelConfig config;
  std::optional<TrainingRecord> training;  // of a checkpoint of ours

  /// The length of the sequences it was trained on where that is known, else the longest it takes.
  std::int64_t sequence_length() const;
  /// run.exact_leaves of a run in exact mode, whose sums `device` computes too; else 0.
  int num_leaves(const Device& device, Precision precision) const;
};

/// ConfigError ("--checkpoint") where `directory` has no model that this program computes.
TrainedModel read_trained_model(const std::string& directory);

/// What made the model's token ids: `choice` (--tokenizer) where it is not empty, else what the
/// directory says, else "bytes" for a vocabulary of exactly that size. ConfigError ("--tokenizer")
/// where nothing says so.
std::string tokenizer_name(const TrainedModel& model, const std::string& choice);

}  // namespace redspine
