#include "trainer/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

#include "tensor/ops.h"
#include "tensor/portable_math.h"

namespace redspine {

namespace {

// What lies side by side and decays alike is one part.
std::vector<AdamWPart> parts_of(const ParameterStore& store, double weight_decay) {
  std::vector<AdamWPart> parts;
  for (const Parameter& parameter : store.parameters()) {
    const AdamWPart part{.begin = parameter.offset,
                         .count = parameter.value.count(),
                         .weight_decay = parameter.spec.decays() ? weight_decay : 0.0};
    if (!parts.empty() && parts.back().begin + parts.back().count == part.begin &&
        parts.back().weight_decay == part.weight_decay) {
      parts.back().count += part.count;
    } else {
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, Device& device, ParameterStore& store,
                     std::int64_t num_updates)
    : config_(config),
      device_(device),
      store_(store),
      parts_(parts_of(store, config.weight_decay)),
      exp_avg_(device, DType::f32, store.values().shape()),
      exp_avg_sq_(device, DType::f32, store.values().shape()),
      num_updates_(num_updates) {}

void Optimizer::update(double learning_rate, double gradient_scale) {
  ++num_updates_;
  const auto t = static_cast<double>(num_updates_);
  ops::run(device_, AdamW{.parameter = store_.values(),
                          .exp_avg = exp_avg_,
                          .exp_avg_sq = exp_avg_sq_,
                          .gradient = store_.gradients(),
                          .working = store_.working(),
                          .parts = parts_,
                          .gradient_scale = gradient_scale,
                          .learning_rate = learning_rate,
                          .beta1 = config_.beta1,
                          .beta2 = config_.beta2,
                          .epsilon = config_.epsilon,
                          .correction1 = 1.0 - portable::pow(config_.beta1, t),
                          .correction2 = 1.0 - portable::pow(config_.beta2, t)});
}

double clip_factor(double norm, double max_norm) {
  constexpr double kEpsilon = 1e-6;
  return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + kEpsilon)) : 1.0;
}

}  // namespace redspine
