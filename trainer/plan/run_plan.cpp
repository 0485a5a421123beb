#include "trainer/plan/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "model/flops.h"
#include "model/model_spec.h"
#include "trainer/plan/memory_classes.h"
#include "trainer/plan/planned_rank.h"

namespace redspine {

std::int64_t checkpoint_bytes(const ModelConfig& model) {
  constexpr std::int64_t kParts = 3;
  return kParts * std::int64_t{sizeof(float)} * num_parameters(model);
}

std::int64_t num_checkpoints(const Config& config) {
  const std::int64_t interval = config.checkpoint.interval;
  if (interval == 0) return 1;  // at the end
  return (config.train.steps + interval - 1) / interval;
}

RunTime time_of_run(const Config& config, int num_ranks, const Machine& machine,
                    const StepTraces& step, std::int64_t checkpoint_bytes) {
  RunTime time;
  time.step = time_of(step, machine, config.parallel.mesh(num_ranks));
  const double seconds = time.step.seconds();
  const auto num_tokens =
      static_cast<double>(config.batch.global_batch_size * config.batch.sequence_length);
  time.tokens_per_second = num_tokens / seconds;
  time.model_flops = time.tokens_per_second *
                     training_flops_per_token(config.model, config.batch.sequence_length) /
                     num_ranks;
  const double peak = machine.peak_flops(config.run.precision);
  time.mfu = peak > 0.0 ? time.model_flops / peak : 0.0;
  if (machine.storage_gigabytes_per_second > 0.0) {
    time.save_seconds =
        static_cast<double>(checkpoint_bytes) / (1e9 * machine.storage_gigabytes_per_second);
  }
  const bool waits = !config.checkpoint.async;
  time.run_seconds =
      static_cast<double>(config.train.steps) * seconds +
      (waits ? static_cast<double>(num_checkpoints(config)) * time.save_seconds : 0.0);
  return time;
}

RunPlan plan_run(const Config& config, int num_ranks, DeviceKind kind, const Machine* machine) {
  RunPlan plan;
  plan.memory = plan_memory(config, num_ranks, kind);
  plan.checkpoint_bytes = checkpoint_bytes(config.model);
  plan.num_checkpoints = num_checkpoints(config);
  const ProcessGroup world = ProcessGroup::imagined(0, num_ranks);
  const StepTraces step = PlannedRank(config, world, kind).record_step();
  plan.traffic = traffic_of(step);
  if (machine != nullptr) {
    plan.time = time_of_run(config, num_ranks, *machine, step, plan.checkpoint_bytes);
  }
  return plan;
}

std::string memory_problem(const MemoryPlan& memory, const Machine& machine) {
  constexpr double kGib = 1 << 30;
  const DeviceKind kind = machine.device == DeviceChoice::cuda ? DeviceKind::cuda : DeviceKind::cpu;
  const auto needed = static_cast<double>(memory.on_device(kind));
  if (needed <= machine.memory_gib * kGib) return "";
  std::vector<MemoryClass> classes;
  std::ranges::copy_if(kMemoryClasses, std::back_inserter(classes),
                       [kind](const MemoryClass& each) {
                         return kind == DeviceKind::cpu || each.bytes != &MemoryPlan::snapshot;
                       });
  std::ranges::stable_sort(classes, std::ranges::greater(),
                           [&memory](const MemoryClass& each) { return memory.*each.bytes; });
  constexpr std::size_t kNumShown = 3;
  std::string text = fmt::format("{:.1f} GiB of {:.1f}", needed / kGib, machine.memory_gib);
  for (std::size_t i = 0; i < kNumShown; ++i) {
    text += fmt::format("{} {} {:.1f}", i == 0 ? ", most of it" : ",", classes[i].name,
                        static_cast<double>(memory.*classes[i].bytes) / kGib);
  }
  return text;
}

}  // namespace redspine
