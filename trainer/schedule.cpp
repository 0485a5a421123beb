#include "trainer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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
      return min + (1.0 - min) * 0.5 * (1.0 + std::cos(std::numbers::pi * p));
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

}  // namespace redspine
