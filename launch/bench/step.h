// Training steps as a run would make them, measured: speed, memory, where the time goes, and the
// least time that the products, the attention and the streams of a step would take here.
#pragma once

#include <optional>
#include <vector>

#include "launch/bench/gemm.h"
#include "launch/bench/memory.h"
#include "launch/bench/phases.h"
#include "trainer/plan/memory_plan.h"
#include "trainer/trainer.h"

namespace redspine {

/// This rank's place on the tensor axis of a job of `world`.
TensorRank tensor_rank_of(const Config& config, const ProcessGroup& world);

/// What the parts of a step would take at the best rates that were measured in the same run: each
/// product at its own, attention at that of a square product, AdamW and four passes over the
/// logits at that of memory. Nothing for what else a step does, and nothing for other ranks.
struct StepFloor {
  double products;
  double attention;
  double optimizer;
  double logits;

  double sum() const { return products + attention + optimizer + logits; }
};
StepFloor step_floor(const Config& config, const ProcessGroup& world,
                     const std::vector<ProductRate>& products, const StreamRates& streams);

struct StepResult {
  double tokens_per_second;     // over all ranks
  double model_flops;           // per second and rank
  std::vector<double> seconds;  // of each step, ascending
  double cpu_seconds;           // a step, of all threads of this rank
  double forward_seconds;       // a step, of the forward passes alone
  PhaseSeconds phases;
  std::optional<PhaseTimes> times;  // a step; where kernels block, on a CPU
  std::int64_t used_bytes;          // by this rank, beyond what the device takes by itself
  MemoryPlan plan;
  double loss;  // of the last step

  double median_seconds() const { return seconds[seconds.size() / 2]; }
};

struct StepBench {
  const Config& config;
  RunData& data;
  std::int64_t num_steps;
};
/// Collective over the world.
StepResult measure_steps(const StepBench& bench, const ProcessGroup& world, Device& device);

}  // namespace redspine
