#include "trainer/optimizer.h"

#include <algorithm>
#include <cmath>

#include "tensor/ops.h"

namespace redspine {

Optimizer::Optimizer(const OptimizerConfig& config, Device& device, ParameterStore& store,
                     std::int64_t num_updates)
    : config_(config),
      device_(device),
      store_(store),
      exp_avg_(device, DType::f32, store.values().shape()),
      exp_avg_sq_(device, DType::f32, store.values().shape()),
      num_updates_(num_updates) {}

void Optimizer::update(double learning_rate, double gradient_scale) {
  ++num_updates_;
  const auto t = static_cast<double>(num_updates_);
  for (const Parameter& parameter : store_.parameters()) {
    const std::int64_t count = parameter.value.count();
    ops::run(device_, AdamW{.parameter = parameter.value.reshape({count}),
                            .exp_avg = exp_avg_.view().slice(parameter.offset, count),
                            .exp_avg_sq = exp_avg_sq_.view().slice(parameter.offset, count),
                            .gradient = parameter.gradient.reshape({count}),
                            .working = parameter.working.reshape({parameter.working.count()}),
                            .gradient_scale = gradient_scale,
                            .learning_rate = learning_rate,
                            .beta1 = config_.beta1,
                            .beta2 = config_.beta2,
                            .epsilon = config_.epsilon,
                            .weight_decay = parameter.spec.decays() ? config_.weight_decay : 0.0,
                            .correction1 = 1.0 - std::pow(config_.beta1, t),
                            .correction2 = 1.0 - std::pow(config_.beta2, t)});
  }
}

double clip_factor(double norm, double max_norm) {
  constexpr double kEpsilon = 1e-6;
  return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + kEpsilon)) : 1.0;
}

}  // namespace redspine
