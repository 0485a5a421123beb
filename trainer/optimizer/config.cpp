#include "trainer/optimizer/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tensor/value_checks.h"

namespace redspine {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();

}  // namespace

void OptimizerConfig::validate(ConfigProblems& problems) const {
  check_not_negative(problems, "optimizer.learning_rate", learning_rate);
  check_fraction(problems, "optimizer.beta1", beta1);
  check_fraction(problems, "optimizer.beta2", beta2);
  check_positive(problems, "optimizer.epsilon", epsilon);
  check_not_negative(problems, "optimizer.weight_decay", weight_decay);
  check_not_negative(problems, "optimizer.max_gradient_norm", max_gradient_norm);
}

void ScheduleConfig::validate(ConfigProblems& problems) const {
  check_count(problems, "schedule.warmup_steps", warmup_steps, 0, kMaxCount);
  check_count(problems, "schedule.decay_steps", decay_steps, 1, kMaxCount);
  if (!(min_ratio >= 0.0 && min_ratio <= 1.0)) {
    problems.add("schedule.min_ratio", fmt::format("is {}; legal: 0 to 1", min_ratio));
  }
}

std::int64_t default_warmup_steps(std::int64_t decay_steps) {
  return std::clamp<std::int64_t>(decay_steps / 10, 0, 700);
}

}  // namespace redspine
