#include "launch/run/plan_report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "launch/run/planning.h"

namespace redspine {

PlanReport::PlanReport(const Config& config, int num_ranks, DeviceKind kind,
                       const MemoryPlan& memory, std::optional<Machine> machine)
    : planned_bytes_(memory.on_device(kind)) {
  if (!machine) return;
  if (planned_device(config.run, &*machine) != kind) {
    throw ConfigError("--machine", fmt::format("{} computes on {}, but these ranks do not",
                                               machine->name, word_of(machine->device)));
  }
  const RunPlan plan = plan_run(config, num_ranks, kind, &*machine);
  planned_seconds_ = plan.time->step.seconds();
  prediction_ = time_text(*plan.time, config, *machine);
}

std::string PlanReport::comparison(const Device& device) const {
  if (!planned_seconds_ || step_seconds_.empty()) return "";
  std::vector<double> seconds = step_seconds_;
  std::ranges::sort(seconds);
  const double measured = seconds[seconds.size() / 2];
  const bool is_cpu = device.kind() == DeviceKind::cpu;
  constexpr double kMib = 1 << 20;
  return fmt::format(
      "step: planned {:.4f} s, measured {:.4f} (median of {}): {:+.1f}%\n"
      "memory of rank 0: planned {:.1f} MiB, measured {:.1f} ({})\n",
      *planned_seconds_, measured, seconds.size(), 100.0 * (*planned_seconds_ / measured - 1.0),
      static_cast<double>(planned_bytes_) / kMib,
      static_cast<double>(is_cpu ? peak_process_bytes() : device.used_bytes()) / kMib,
      is_cpu ? "the most that the process has had" : "all of the device's");
}

std::int64_t peak_process_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr std::int64_t kUnit = 1024;
  return usage.ru_maxrss * kUnit;
}

}  // namespace redspine
