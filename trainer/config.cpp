#include "trainer/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tensor/printable.h"
#include "tensor/value_checks.h"

namespace redspine {
namespace {

constexpr std::size_t kMaxName = 255;  // bytes that Linux allows for a folder
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();

std::vector<std::int64_t> common_divisors(std::int64_t a, std::int64_t b) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= a && d <= b; ++d) {
    if (a % d == 0 && b % d == 0) divisors.push_back(d);
  }
  return divisors;
}

void validate_tensor_degree(ConfigProblems& problems, const Config& config, int world_size) {
  const std::int64_t tensor = config.parallel.tensor;
  const std::int64_t heads = config.model.num_heads;
  if (!MeshShape::fits(world_size, static_cast<int>(tensor))) {
    problems.add(
        "parallel.tensor",
        fmt::format("is {}, which does not divide the {} of this job; what fits {} and {}: {}",
                    tensor, counted(world_size, "rank"), counted(world_size, "rank"),
                    counted(heads, "head"), fmt::join(common_divisors(world_size, heads), ", ")));
  }
  if (heads % tensor != 0) {
    problems.add("parallel.tensor",
                 fmt::format("is {}, which does not divide model.num_heads ({}): a head is never "
                             "split",
                             tensor, heads));
  }
  if (config.model.ffn_size >= 1 && config.model.ffn_size < tensor) {
    problems.add("model.ffn_size",
                 fmt::format("is {}, fewer than the ranks it is split over (parallel.tensor {})",
                             config.model.ffn_size, tensor));
  }
}

void validate_batch_split(ConfigProblems& problems, const Config& config, int world_size) {
  const std::int64_t num_data_ranks = config.num_data_ranks(world_size);
  const std::int64_t micro = config.batch.micro_batch_size;
  const std::int64_t global = config.batch.global_batch_size;
  const std::int64_t at_once = num_data_ranks * micro;
  if (global % at_once == 0) return;
  const std::int64_t below = global / at_once * at_once;
  const std::string nearest =
      below == 0 ? fmt::format("{}", at_once) : fmt::format("{} and {}", below, below + at_once);
  problems.add("batch.global_batch_size",
               fmt::format("is {}, which is no multiple of {} sequences ({} x "
                           "batch.micro_batch_size {}); nearest: {}",
                           global, at_once, counted(num_data_ranks, "data rank"), micro, nearest));
}

// Layouts of exact mode are those whose ranks get whole leaves and whole lanes.
void validate_exact_tensor(ConfigProblems& problems, const Config& config) {
  const std::int64_t leaves = config.run.exact_leaves;
  const std::int64_t tensor = config.parallel.tensor;
  if (leaves % tensor == 0) return;
  problems.add(
      "run.exact_leaves",
      fmt::format("is {}, which parallel.tensor ({}) does not divide; what fits: a multiple "
                  "of it, the same for every start of the run, or one of these for "
                  "parallel.tensor: {}",
                  leaves, tensor,
                  fmt::join(common_divisors(leaves, config.model.num_heads), ", ")));
}

void validate_exact_lanes(ConfigProblems& problems, const Config& config, int world_size) {
  const std::int64_t lanes = config.run.exact_lanes;
  const std::int64_t global = config.batch.global_batch_size;
  const std::int64_t num_data_ranks = config.num_data_ranks(world_size);
  if (global % lanes != 0) {
    problems.add(
        "run.exact_lanes",
        fmt::format("is {}, which does not divide batch.global_batch_size ({}); what fits: "
                    "0, which is {}",
                    lanes, global, default_exact_lanes(global)));
    return;
  }
  if (lanes % num_data_ranks != 0) {
    problems.add(
        "run.exact_lanes",
        fmt::format("is {}, which {} do not share evenly; what fits: a multiple of {} that "
                    "divides batch.global_batch_size ({}), the same for every start of the "
                    "run",
                    lanes, counted(num_data_ranks, "data rank"), num_data_ranks, global));
  }
  const std::int64_t per_lane = global / lanes;
  if (per_lane % config.batch.micro_batch_size != 0) {
    problems.add(
        "batch.micro_batch_size",
        fmt::format("is {}, which does not divide the {} of a lane (batch.global_batch_size "
                    "{} / run.exact_lanes {})",
                    config.batch.micro_batch_size, counted(per_lane, "sequence"), global, lanes));
  }
}

}  // namespace

std::int64_t default_exact_lanes(std::int64_t global_batch_size) {
  std::int64_t lanes = 8;
  while (global_batch_size % lanes != 0) lanes /= 2;
  return lanes;
}

void RunConfig::validate(ConfigProblems& problems) const {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    problems.add("run.name", fmt::format("is {}; legal: the name of one folder", excerpt(name)));
  }
  if (name.size() > kMaxName) {
    problems.add("run.name", fmt::format("is {}, {} bytes; legal: the name of one folder, of up to "
                                         "{} bytes",
                                         excerpt(name), name.size(), kMaxName));
  }
  if (output_dir.empty()) {
    problems.add("run.output_dir", "is empty; legal: the path of a folder (\".\" for this one)");
  }
  constexpr std::int64_t kMaxParts = 4096;
  check_count(problems, "run.exact_leaves", exact_leaves, exact ? 1 : 0, kMaxParts);
  check_count(problems, "run.exact_lanes", exact_lanes, exact ? 1 : 0, kMaxParts);
  check_count(problems, "run.spot_check_interval", spot_check_interval, 0, kMaxCount);
  if (exact && precision == Precision::bf16) {
    problems.add("run.exact", "is true, but run.precision is bf16; legal with it: fp32");
  }
  if (exact && device == DeviceChoice::cuda) {
    problems.add("run.exact", "is true, but run.device is cuda; legal with it: cpu");
  }
  if (device != DeviceChoice::cpu) return;  // what else there is shows when the ranks look for it
  if (precision == Precision::bf16) {
    problems.add("run.precision", "is bf16, but run.device is cpu, which computes in fp32 alone");
  }
  if (collectives == CollectiveBackend::nccl) {
    problems.add("run.collectives", "is nccl, but run.device is cpu; legal with it: auto, mpi");
  }
}

void BatchConfig::validate(ConfigProblems& problems) const {
  check_count(problems, "batch.sequence_length", sequence_length, 1, kMaxCount);
  check_count(problems, "batch.global_batch_size", global_batch_size, 1, kMaxCount);
  check_count(problems, "batch.micro_batch_size", micro_batch_size, 1, kMaxCount);
}

void TrainConfig::validate(ConfigProblems& problems) const {
  check_count(problems, "train.steps", steps, 1, kMaxCount);
  check_count(problems, "train.log_interval", log_interval, 1, kMaxCount);
  check_count(problems, "train.eval_interval", eval_interval, 0, kMaxCount);
  check_count(problems, "train.eval_batches", eval_batches, 0, kMaxCount);
}

void CheckpointConfig::validate(ConfigProblems& problems) const {
  check_count(problems, "checkpoint.interval", interval, 0, kMaxCount);
  check_count(problems, "checkpoint.keep", keep, 0, kMaxCount);
  check_count(problems, "checkpoint.keep_every", keep_every, 0, kMaxCount);
  if (resume.empty()) {
    problems.add("checkpoint.resume", "is empty; legal: auto, none, or a checkpoint's directory");
  }
}

void Config::validate(ConfigProblems& problems, int world_size) const {
  run.validate(problems);
  model.validate(problems);
  data.validate(problems);
  batch.validate(problems);
  parallel.validate(problems);
  optimizer.validate(problems);
  schedule.validate(problems);
  train.validate(problems);
  checkpoint.validate(problems);

  if (batch.sequence_length > model.max_sequence_length) {
    problems.add("batch.sequence_length",
                 fmt::format("is {}, longer than model.max_sequence_length ({})",
                             batch.sequence_length, model.max_sequence_length));
  }
  if (train.eval_interval > 0 && data.validation.empty()) {
    problems.add("train.eval_interval",
                 fmt::format("is {}, but data.validation lists no files; legal without: 0",
                             train.eval_interval));
  }
  if (parallel.tensor < 1 || model.num_heads < 1) return;
  validate_tensor_degree(problems, *this, world_size);
  // The split over data ranks has a meaning only once the tensor degree fits the world.
  if (!MeshShape::fits(world_size, static_cast<int>(parallel.tensor))) return;
  if (run.spot_check_interval > 0 && num_data_ranks(world_size) == 1) {
    problems.add(
        "run.spot_check_interval",
        fmt::format("is {}, but with one data rank no other ranks have the same weights to "
                    "compute a block again; legal with it: 0",
                    run.spot_check_interval));
  }
  if (run.exact && run.exact_leaves >= 1) validate_exact_tensor(problems, *this);
  if (batch.micro_batch_size < 1 || batch.global_batch_size < 1) return;
  validate_batch_split(problems, *this, world_size);
  if (run.exact && run.exact_lanes >= 1) validate_exact_lanes(problems, *this, world_size);
}

}  // namespace redspine
