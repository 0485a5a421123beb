// A small training job for tests of saving and resuming: every kind of model, dropout, gradient
// accumulation, two blended token files that are through several times, and evaluations.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/mpi_main.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/trainer.h"

namespace redspine::testing {

struct Layout {
  int num_data;
  int num_tensor;

  int num_ranks() const { return num_data * num_tensor; }
  std::string to_string() const { return fmt::format("{}x{}", num_data, num_tensor); }
};

/// Runs `action` on the first ranks, as many as `layout` has, with the group of these; the others
/// wait. Collective over the world.
template <class Action>
void on_layout(const Layout& layout, const Action& action) {
  const bool takes_part = world().rank() < layout.num_ranks();
  const ProcessGroup ranks = world().split(takes_part ? 0 : 1);
  if (takes_part) action(ranks);
  world().barrier();
}

/// Writes the token files that the configurations below read. Local.
void write_training_tokens(const std::string& folder);

/// Models whose tensors are stored in each of the three ways, with names for messages.
std::vector<std::pair<std::string, ModelConfig>> stored_models();

/// A run of 8 steps, laid over data x tensor ranks.
Config training_config(const ModelConfig& model, const std::string& folder, int num_data,
                       int num_tensor);

/// Hash of each tensor in a checkpoint, model and moments, by name.
std::map<std::string, std::string> tensor_hashes(const std::string& directory);

/// What a saver writes under: no settings, the ranks of the trainer.
TrainingRecord record_of(const Trainer& trainer);

/// A saver for a trainer's state, into `folder`.
CheckpointSaver make_saver(Trainer& trainer, const ModelConfig& model, const std::string& folder,
                           Device& device, SaveMode mode = SaveMode::synchronous);

}  // namespace redspine::testing
