// The `optimizer:` and `schedule:` sections of a run's configuration.
//
// Plain values, local to a rank and equal on all of them.
#pragma once

#include <cstdint>

#include "tensor/enum_words.h"
#include "tensor/error.h"

namespace redspine {

enum class ScheduleKind { constant, linear, cosine, wsd };
template <>
inline constexpr auto kEnumWords<ScheduleKind> = std::to_array<EnumWord<ScheduleKind>>({
    {ScheduleKind::constant, "constant"},
    {ScheduleKind::linear, "linear"},
    {ScheduleKind::cosine, "cosine"},
    {ScheduleKind::wsd, "wsd"},
});

/// AdamW, arXiv 1711.05101, in PyTorch's form.
struct OptimizerConfig {
  double learning_rate = 6.0e-4;  // the schedule's peak
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1.0e-8;         // added outside the root
  double weight_decay = 0.1;       // decoupled; none on one-dimensional tensors
  double max_gradient_norm = 1.0;  // global norm that gradients are clipped to; 0 = off

  void validate(ConfigProblems& problems) const;
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::cosine;
  std::int64_t warmup_steps = 700;   // linear rise from 0; 0 = none; unset: see below
  std::int64_t decay_steps = 19560;  // length of the whole schedule; unset: train.steps
  double min_ratio = 0.1;            // last learning rate / optimizer.learning_rate

  void validate(ConfigProblems& problems) const;
};

/// What an unset schedule.warmup_steps is: a tenth of the schedule, and 700 at most.
std::int64_t default_warmup_steps(std::int64_t decay_steps);

}  // namespace redspine
