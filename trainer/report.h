// The reports of a step and of an evaluation: the values that metrics.jsonl and the console show.
// The same on every rank, but for the times.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/digest.h"
#include "trainer/requests.h"

namespace redspine {

/// Where a step's time went, on this rank.
struct PhaseSeconds {
  double gradients = 0.0;  // forward and backward of all micro-batches, and what was left to reduce
  double norm = 0.0;       // of the gradient, and the ranks' agreement
  double update = 0.0;     // AdamW; on a GPU what it takes to enqueue it
};

struct StepReport {
  std::int64_t step;     // from 1
  double loss;           // mean over the tokens of the global batch
  double gradient_norm;  // global, before clipping
  double learning_rate;
  std::int64_t tokens;       // targets seen so far, over all ranks
  std::int64_t samples;      // sequences seen so far, over all ranks
  std::uint64_t batch_hash;  // sum of the samples' hashes modulo 2^64
  Digest weights_digest;     // of the weights after it
  bool applied;              // the gradient was finite, and the parameters were updated
  double seconds;            // of this step, without evaluations and saves
  double tokens_per_second;  // over all ranks
  double tflops_per_rank;
  std::int64_t num_steps = 1;  // that the last three are of: more in a line for several steps
  PhaseSeconds phases = {};
  Requests requests;  // what ranks had been asked when the step began
};

/// The report of the later of two steps, with the times of both.
StepReport with_times_of(const StepReport& before, StepReport report);

struct ValidationReport {
  std::int64_t step;
  double loss;          // mean over the tokens
  std::int64_t tokens;  // targets that were counted
};

}  // namespace redspine
