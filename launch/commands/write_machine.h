// bench --write-machine: measures the machine and writes its description.
#pragma once

#include <optional>
#include <string>

#include "trainer/trainer.h"

namespace redspine {

struct MachineToWrite {
  const Config& config;
  std::string path;
  std::optional<std::int64_t> square_size;  // as bench --matrix gives it
  std::int64_t num_steps;
  std::int64_t most_bytes;           // of a message between ranks
  std::optional<double> memory_gib;  // of a rank's device; without it, of the host's memory
};

/// Gives the exit code. Collective over the world; rank 0 writes the file, which appears whole.
int write_machine(const MachineToWrite& wanted, RunData& data, const ProcessGroup& world,
                  Device& device);

}  // namespace redspine
