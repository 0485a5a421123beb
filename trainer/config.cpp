#include "trainer/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/printable.h"

namespace redspine {
namespace {

constexpr std::size_t kMaxName = 255;  // bytes that Linux allows for a folder
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();

void check_count(Mistakes& mistakes, const char* key, std::int64_t value, std::int64_t minimum) {
  if (value < minimum || value > kMaxCount) {
    mistakes.add(key, fmt::format("is {}; legal: {} to {}", value, minimum, kMaxCount));
  }
}

void check_not_negative(Mistakes& mistakes, const char* key, double value) {
  if (!(value >= 0.0) || !std::isfinite(value)) {
    mistakes.add(key, fmt::format("is {}; legal: a finite number of at least 0", value));
  }
}

void check_fraction(Mistakes& mistakes, const char* key, double value) {
  if (!(value >= 0.0 && value < 1.0)) {
    mistakes.add(key, fmt::format("is {}; legal: 0 to below 1", value));
  }
}

std::vector<std::int64_t> common_divisors(std::int64_t a, std::int64_t b) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= a && d <= b; ++d) {
    if (a % d == 0 && b % d == 0) divisors.push_back(d);
  }
  return divisors;
}

void validate_tensor_degree(Mistakes& mistakes, const Config& config, int world_size) {
  const std::int64_t tensor = config.parallel.tensor;
  const std::int64_t heads = config.model.num_heads;
  if (world_size % tensor != 0) {
    mistakes.add(
        "parallel.tensor",
        fmt::format("is {}, which does not divide the {} of this job; what fits {} and {}: {}",
                    tensor, counted(world_size, "rank"), counted(world_size, "rank"),
                    counted(heads, "head"), fmt::join(common_divisors(world_size, heads), ", ")));
  }
  if (heads % tensor != 0) {
    mistakes.add("parallel.tensor",
                 fmt::format("is {}, which does not divide model.num_heads ({}): a head is never "
                             "split",
                             tensor, heads));
  }
  if (config.model.ffn_size >= 1 && config.model.ffn_size < tensor) {
    mistakes.add("model.ffn_size",
                 fmt::format("is {}, fewer than the ranks it is split over (parallel.tensor {})",
                             config.model.ffn_size, tensor));
  }
}

void validate_batch_split(Mistakes& mistakes, const Config& config, int world_size) {
  const std::int64_t num_data_ranks = config.num_data_ranks(world_size);
  const std::int64_t micro = config.batch.micro_batch_size;
  const std::int64_t global = config.batch.global_batch_size;
  const std::int64_t at_once = num_data_ranks * micro;
  if (global % at_once == 0) return;
  const std::int64_t below = global / at_once * at_once;
  const std::string nearest =
      below == 0 ? fmt::format("{}", at_once) : fmt::format("{} and {}", below, below + at_once);
  mistakes.add("batch.global_batch_size",
               fmt::format("is {}, which is no multiple of {} sequences ({} x "
                           "batch.micro_batch_size {}); nearest: {}",
                           global, at_once, counted(num_data_ranks, "data rank"), micro, nearest));
}

}  // namespace

void RunConfig::validate(Mistakes& mistakes) const {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    mistakes.add("run.name", fmt::format("is {}; legal: the name of one folder", excerpt(name)));
  }
  if (name.size() > kMaxName) {
    mistakes.add("run.name", fmt::format("is {}, {} bytes; legal: the name of one folder, of up to "
                                         "{} bytes",
                                         excerpt(name), name.size(), kMaxName));
  }
  if (output_dir.empty()) {
    mistakes.add("run.output_dir", "is empty; legal: the path of a folder (\".\" for this one)");
  }
  if (device != DeviceChoice::cpu) return;  // what else there is shows when the ranks look for it
  if (precision == Precision::bf16) {
    mistakes.add("run.precision", "is bf16, but run.device is cpu, which computes in fp32 alone");
  }
  if (collectives == Collectives::nccl) {
    mistakes.add("run.collectives", "is nccl, but run.device is cpu; legal with it: auto, mpi");
  }
}

void BatchConfig::validate(Mistakes& mistakes) const {
  check_count(mistakes, "batch.sequence_length", sequence_length, 1);
  check_count(mistakes, "batch.global_batch_size", global_batch_size, 1);
  check_count(mistakes, "batch.micro_batch_size", micro_batch_size, 1);
}

void OptimizerConfig::validate(Mistakes& mistakes) const {
  check_not_negative(mistakes, "optimizer.learning_rate", learning_rate);
  check_fraction(mistakes, "optimizer.beta1", beta1);
  check_fraction(mistakes, "optimizer.beta2", beta2);
  if (!(epsilon > 0.0) || !std::isfinite(epsilon)) {
    mistakes.add("optimizer.epsilon",
                 fmt::format("is {}; legal: a finite number above 0", epsilon));
  }
  check_not_negative(mistakes, "optimizer.weight_decay", weight_decay);
  check_not_negative(mistakes, "optimizer.max_gradient_norm", max_gradient_norm);
}

void ScheduleConfig::validate(Mistakes& mistakes) const {
  check_count(mistakes, "schedule.warmup_steps", warmup_steps, 0);
  check_count(mistakes, "schedule.decay_steps", decay_steps, 1);
  if (!(min_ratio >= 0.0 && min_ratio <= 1.0)) {
    mistakes.add("schedule.min_ratio", fmt::format("is {}; legal: 0 to 1", min_ratio));
  }
}

std::int64_t default_warmup_steps(std::int64_t decay_steps) {
  return std::clamp<std::int64_t>(decay_steps / 10, 0, 700);
}

void TrainConfig::validate(Mistakes& mistakes) const {
  check_count(mistakes, "train.steps", steps, 1);
  check_count(mistakes, "train.log_interval", log_interval, 1);
  check_count(mistakes, "train.eval_interval", eval_interval, 0);
  check_count(mistakes, "train.eval_batches", eval_batches, 0);
}

void CheckpointConfig::validate(Mistakes& mistakes) const {
  check_count(mistakes, "checkpoint.interval", interval, 0);
  check_count(mistakes, "checkpoint.keep", keep, 0);
  check_count(mistakes, "checkpoint.keep_every", keep_every, 0);
  if (resume.empty()) {
    mistakes.add("checkpoint.resume", "is empty; legal: auto, none, or a checkpoint's directory");
  }
}

void Config::validate(Mistakes& mistakes, int world_size) const {
  run.validate(mistakes);
  model.validate(mistakes);
  data.validate(mistakes);
  batch.validate(mistakes);
  parallel.validate(mistakes);
  optimizer.validate(mistakes);
  schedule.validate(mistakes);
  train.validate(mistakes);
  checkpoint.validate(mistakes);

  if (batch.sequence_length > model.max_sequence_length) {
    mistakes.add("batch.sequence_length",
                 fmt::format("is {}, longer than model.max_sequence_length ({})",
                             batch.sequence_length, model.max_sequence_length));
  }
  if (train.eval_interval > 0 && data.validation.empty()) {
    mistakes.add("train.eval_interval",
                 fmt::format("is {}, but data.validation lists no files; legal without: 0",
                             train.eval_interval));
  }
  if (parallel.tensor < 1 || model.num_heads < 1) return;
  validate_tensor_degree(mistakes, *this, world_size);
  // The split over data ranks has a meaning only once the tensor degree fits the world.
  if (world_size % parallel.tensor != 0) return;
  if (batch.micro_batch_size < 1 || batch.global_batch_size < 1) return;
  validate_batch_split(mistakes, *this, world_size);
}

}  // namespace redspine
