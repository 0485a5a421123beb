#include "trainer/optimizer/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/portable_math.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

constexpr double kWsdDecayShare = 0.2;

// Where `step` lies between `begin` (0) and `end` (1); 1 beyond, also where there is no between.
double progress(std::int64_t step, std::int64_t begin, std::int64_t end) {
  if (step >= end) return 1.0;
  return std::max(0.0, static_cast<double>(step - begin) / static_cast<double>(end - begin));
}

}  // namespace

double schedule_factor(const ScheduleConfig& config, std::int64_t step) {
  if (step < config.warmup_steps) {
    return static_cast<double>(step) / static_cast<double>(config.warmup_steps);
  }
  const double min = config.min_ratio;
  switch (config.kind) {
    case ScheduleKind::constant:
      return 1.0;
    case ScheduleKind::linear:
      return 1.0 - (1.0 - min) * progress(step, config.warmup_steps, config.decay_steps);
    case ScheduleKind::cosine: {
      const double p = progress(step, config.warmup_steps, config.decay_steps);
      return min + (1.0 - min) * 0.5 * (1.0 + portable::cos(std::numbers::pi * p));
    }
    case ScheduleKind::wsd: {
      const auto length = static_cast<std::int64_t>(
          std::llround(kWsdDecayShare * static_cast<double>(config.decay_steps)));
      const std::int64_t begin = std::max(config.warmup_steps, config.decay_steps - length);
      return 1.0 - (1.0 - min) * progress(step, begin, config.decay_steps);
    }
  }
  return 1.0;
}

std::string describe_schedule(const OptimizerConfig& optimizer, const ScheduleConfig& schedule) {
  const double peak = optimizer.learning_rate;
  const std::string end =
      fmt::format("to {:.3g} at step {}", peak * schedule.min_ratio, schedule.decay_steps);
  const auto course = [&]() -> std::string {
    switch (schedule.kind) {
      case ScheduleKind::constant:
        break;
      case ScheduleKind::linear:
        return "linear " + end;
      case ScheduleKind::cosine:
        return "cosine " + end;
      case ScheduleKind::wsd:
        return "constant, and down " + end;
    }
    return "constant";
  };
  if (schedule.warmup_steps == 0) return fmt::format("learning rate: {:.3g}, {}\n", peak, course());
  return fmt::format("learning rate: {} to {:.3g}, then {}\n",
                     counted(schedule.warmup_steps, "warm-up step"), peak, course());
}

std::vector<ConfigProblem> schedule_warnings(const OptimizerConfig& optimizer,
                                             const ScheduleConfig& schedule, std::int64_t steps) {
  const double peak = optimizer.learning_rate;
  const double last = peak * schedule.min_ratio;
  ConfigProblems warnings;
  if (schedule.warmup_steps > steps) {
    const double factor = schedule_factor(schedule, steps);
    warnings.add(
        "schedule.warmup_steps",
        fmt::format("is {} in a run of {}: the learning rate only rises, to {:.3g}, {:.2g}% "
                    "of optimizer.learning_rate",
                    schedule.warmup_steps, counted(steps, "step"), peak * factor, 100.0 * factor));
  }
  if (schedule.kind == ScheduleKind::constant) return warnings.all();
  if (schedule.warmup_steps <= steps && schedule.warmup_steps > 0 &&
      schedule.warmup_steps >= schedule.decay_steps) {
    warnings.add(
        "schedule.warmup_steps",
        fmt::format("is {}, and schedule.decay_steps {}: the learning rate falls to {:.3g} "
                    "at once when the warm-up ends",
                    schedule.warmup_steps, schedule.decay_steps, last));
  }
  const std::int64_t num_after = steps - std::max(schedule.decay_steps, schedule.warmup_steps);
  if (num_after > 0) {
    warnings.add(
        "schedule.decay_steps",
        fmt::format("is {} in a run of {}: the learning rate stays at {:.3g} for the {} "
                    "after it{}",
                    schedule.decay_steps, counted(steps, "step"), last, counted(num_after, "step"),
                    last == 0.0 ? ", which trains nothing" : ""));
  }
  return warnings.all();
}

}  // namespace redspine
