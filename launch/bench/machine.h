// Measures the machine that it runs on, as plans need to know it (trainer/plan/machine.h): each
// operation of training steps by itself, sums between ranks, and what a step takes besides.
// Collective over the world.
#pragma once

#include "trainer/plan/machine.h"
#include "trainer/trainer.h"

namespace redspine {

struct MachineBench {
  const Config& config;  // measured as it is, and as models of other widths of two layers
  RunData& data;
  std::string name;
  std::int64_t square_size;  // of the product that gives the peak
  std::int64_t num_steps;    // of each model
  std::int64_t most_bytes;   // of a message between ranks
  double memory_gib;         // of a rank
};

/// The same on all ranks. Keeps every rank for minutes; nothing else should run meanwhile.
Machine measure_machine(const MachineBench& bench, const ProcessGroup& world, Device& device);

/// Of a host, for its ranks together.
double host_memory_gib();

}  // namespace redspine
