// A small run for tests of training: its configuration, its data, and a trainer on all ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/mpi_main.h"
#include "trainer/trainer.h"
#include "trainer/training_run.h"

namespace redspine::testing {

/// Training and validation files in a directory that all ranks see. Collective.
struct RunFiles {
  RunFiles();
  std::string directory;
  std::string train;
  std::string validation;
};

/// A two-layer model that takes 8 sequences of 16 tokens per step.
Config run_config(const RunFiles& files, Family family);

/// The largest tensor degree up to 2 that the ranks at hand allow.
int tensor_degree();

/// Everything that a trainer needs, alive as long as it. Collective over `ranks`.
struct RunCase {
  explicit RunCase(const Config& run_config, const ProcessGroup& ranks = world(),
                   const TrainingProgress& progress = {});

  std::vector<float> parameters();  // of this rank

  Config config;
  std::unique_ptr<Device> device;
  RunData data;
  Trainer trainer;
};

/// The whole run, as the command makes it, into its directory, which exists. Collective.
RunEnd run_to_end(RunCase& run);

}  // namespace redspine::testing
