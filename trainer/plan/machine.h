// The description of a kind of machine, as far as the time of a training step depends on it: how
// fast a rank computes and how fast ranks talk. A plain value; launch/config reads it from a file,
// `redspine bench --write-machine` writes one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/error.h"
#include "trainer/config.h"

namespace redspine {

/// How fast an operation of one size was. Sizes between are interpolated, each operation from its
/// own rates; products that have none from those under "product".
struct MachineRate {
  std::string operation;  // as OperationCost names it, or "product"
  Precision precision = Precision::fp32;
  std::int64_t rows = 0;              // of products and attention, as in OperationCost
  std::int64_t inner = 0;             // the same
  std::int64_t cols = 0;              // the same
  double bytes = 0.0;                 // of others: what the operation reads and writes
  double gigaflops = 0.0;             // of products and attention, 10^9 a second
  double gigabytes_per_second = 0.0;  // of others
};

/// From one rank to another.
struct MachineLink {
  double latency_seconds = 0.0;
  double gigabytes_per_second = 0.0;  // of one rank, each way
};

/// An all-reduce between so many ranks of one node, as it was measured.
struct MachineAllReduce {
  std::int64_t ranks = 0;
  std::int64_t bytes = 0;
  double seconds = 0.0;
};

struct Machine {
  std::string name;
  DeviceChoice device = DeviceChoice::automatic;  // cpu or cuda
  std::int64_t ranks_per_node = 1;
  double memory_gib = 0.0;                   // of one rank
  double memory_gigabytes_per_second = 0.0;  // of one rank, read and written together
  double operation_seconds = 0.0;            // what each takes beside its work: a launch
  double step_seconds = 0.0;                 // what a step takes beside its operations
  double fp32_tflops = 0.0;                  // of one rank: what MFU refers to
  double bf16_tflops = 0.0;                  // the same; 0: none
  double overlap = 1.0;  // the part of a collective beneath which computing goes on unhindered
  double storage_gigabytes_per_second = 0.0;  // of all ranks together; 0: not known
  MachineLink inside;                         // between ranks of a node
  MachineLink between;                        // between nodes
  std::vector<MachineRate> rates;
  std::vector<MachineAllReduce> all_reduces;

  double peak_flops(Precision precision) const;
  /// Adds what is wrong, under full keys ("inside.latency_seconds", "rates[3].operation").
  void validate(ConfigProblems& problems) const;
};

}  // namespace redspine
