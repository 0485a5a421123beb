// The configuration of a run: the sections owned by trainer/, and Config, all sections together.
//
// Plain values, local to a rank and equal on all of them. launch/ fills them from a file; derived
// defaults (below, "unset: ...") are filled in there.
#pragma once

#include <cstdint>
#include <string>

#include "data/config.h"
#include "model/config.h"
#include "parallel/config.h"
#include "tensor/enum_words.h"
#include "tensor/error.h"
#include "tensor/view.h"
#include "trainer/optimizer/config.h"

namespace redspine {

enum class DeviceChoice { automatic, cpu, cuda };
template <>
inline constexpr auto kEnumWords<DeviceChoice> = std::to_array<EnumWord<DeviceChoice>>({
    {DeviceChoice::automatic, "auto"},
    {DeviceChoice::cpu, "cpu"},
    {DeviceChoice::cuda, "cuda"},
});

enum class Precision { fp32, bf16 };  // of activations, and of the weights that they meet
template <>
inline constexpr auto kEnumWords<Precision> = std::to_array<EnumWord<Precision>>({
    {Precision::fp32, "fp32"},
    {Precision::bf16, "bf16"},
});

/// The type of the activations.
constexpr DType dtype_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return DType::f32;
    case Precision::bf16:
      return DType::bf16;
  }
  __builtin_unreachable();
}

struct RunConfig {
  std::string name = "run";         // everything of a run lies in output_dir/name
  std::string output_dir = "runs";  // relative to where the command was started
  std::uint64_t seed = 1234;        // of weights, sample order and dropout
  DeviceChoice device = DeviceChoice::automatic;
  Precision precision = Precision::fp32;  // bf16, on CUDA only, keeps fp32 master weights
  CollectiveBackend collectives =
      CollectiveBackend::automatic;      // NCCL for ranks with a GPU each, else MPI
  bool exact = false;                    // the same bits on every layout; fp32 on CPUs
  std::int64_t exact_leaves = 0;         // of what tensor ranks share; unset or 0 in exact mode: 8
  std::int64_t exact_lanes = 0;          // of the global batch; unset or 0 in exact mode: 8 or less
  bool check_replicas = true;            // that ranks which hold the same have the same bits
  std::int64_t spot_check_interval = 0;  // steps; 0 = no block is computed again by other ranks

  bool is_spot_check_due(std::int64_t step) const {
    return spot_check_interval > 0 && step % spot_check_interval == 0;
  }
  void validate(ConfigProblems& problems) const;
};

struct BatchConfig {
  std::int64_t sequence_length = 1024;   // tokens; unset: model.max_sequence_length
  std::int64_t global_batch_size = 512;  // sequences per step over all ranks
  std::int64_t micro_batch_size = 8;     // sequences a rank computes at once; the rest accumulates

  void validate(ConfigProblems& problems) const;
};

struct TrainConfig {
  std::int64_t steps = 0;            // required: optimizer steps of the whole run
  std::int64_t log_interval = 1;     // steps
  std::int64_t eval_interval = 250;  // steps; 0 = never; unset without validation data: 0
  std::int64_t eval_batches = 0;     // 0 = the whole validation set, each token once

  bool is_log_due(std::int64_t step) const {
    return step % log_interval == 0 || step == 1 || step == steps;
  }
  bool is_evaluation_due(std::int64_t step) const {
    return eval_interval > 0 && (step % eval_interval == 0 || step == steps);
  }
  void validate(ConfigProblems& problems) const;
};

struct CheckpointConfig {
  std::int64_t interval = 500;  // steps; 0 = only at the end
  std::int64_t keep = 3;        // newest so many; 0 = all
  std::int64_t keep_every = 0;  // additionally every so many steps, for ever; 0 = none
  std::string resume = "auto";  // auto | none | a checkpoint's directory
  std::string initialize_from;  // a directory of weights, ours or transformers'; fresh optimizer
  bool async = true;            // write in the background, from a copy in host memory
  bool verify = true;           // check every hash before resuming; false: sizes and headers alone

  void validate(ConfigProblems& problems) const;
};

/// The lanes of exact mode where none are given: 8, or the largest power of two that divides the
/// batch.
std::int64_t default_exact_lanes(std::int64_t global_batch_size);
inline constexpr std::int64_t kDefaultExactLeaves = 8;

struct Config {
  RunConfig run;
  ModelConfig model;
  DataConfig data;
  BatchConfig batch;
  ParallelConfig parallel;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  CheckpointConfig checkpoint;

  /// What layers are built with; 0 outside of exact mode.
  int num_leaves() const { return run.exact ? static_cast<int>(run.exact_leaves) : 0; }
  std::int64_t num_data_ranks(int world_size) const {
    return parallel.mesh(world_size).size(Axis::data);
  }
  /// Micro-batches that each rank adds up to a step.
  std::int64_t num_accumulation_steps(int world_size) const {
    return batch.global_batch_size / (num_data_ranks(world_size) * batch.micro_batch_size);
  }

  /// Adds everything that is wrong: each section by itself, the sections against one another, and
  /// all of it against the number of ranks.
  void validate(ConfigProblems& problems, int world_size) const;
};

}  // namespace redspine
