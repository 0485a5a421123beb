#include "trainer/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tensor/ops.h"
#include "tensor/portable_math.h"

namespace redspine {

namespace {

std::vector<AdamWPart> adamw_parts(const ParameterStore& store, std::span<const HeldPart> held,
                                   double weight_decay) {
  std::vector<AdamWPart> parts;
  for (const HeldPart& part : held) {
    const bool decays = store.parameters()[part.parameter].spec.decays();
    parts.push_back({.begin = part.begin,
                     .count = part.count,
                     .weight_decay = decays ? weight_decay : 0.0,
                     .place = part.place});
  }
  return parts;
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, Device& device, ParameterStore& store,
                     std::span<const HeldPart> parts, std::int64_t num_updates)
    : config_(config),
      device_(device),
      store_(store),
      parts_(adamw_parts(store, parts, config.weight_decay)),
      exp_avg_(device, DType::f32, store.values().shape()),
      exp_avg_sq_(device, DType::f32, store.values().shape()),
      digests_(device, DType::i64, {std::ssize(parts_), 2}),
      num_updates_(num_updates) {}

void Optimizer::update(double learning_rate, double gradient_scale) {
  ++num_updates_;
  const auto t = static_cast<double>(num_updates_);
  ops::run(device_, AdamW{.parameter = store_.values(),
                          .exp_avg = exp_avg_,
                          .exp_avg_sq = exp_avg_sq_,
                          .gradient = store_.gradients(),
                          .working = store_.working(),
                          .digests = digests_,
                          .parts = parts_,
                          .gradient_scale = gradient_scale,
                          .learning_rate = learning_rate,
                          .beta1 = config_.beta1,
                          .beta2 = config_.beta2,
                          .epsilon = config_.epsilon,
                          .correction1 = 1.0 - portable::pow(config_.beta1, t),
                          .correction2 = 1.0 - portable::pow(config_.beta2, t)});
}

std::vector<Digest> Optimizer::digests() const {
  std::vector<std::int64_t> halves(2 * parts_.size());
  device_.download(host_view(std::span(halves)), digests_.view().reshape({std::ssize(halves)}));
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < halves.size(); i += 2) {
    digests.push_back({.low = static_cast<std::uint64_t>(halves[i]),
                       .high = static_cast<std::uint64_t>(halves[i + 1])});
  }
  return digests;
}

double clip_factor(double norm, double max_norm) {
  constexpr double kEpsilon = 1e-6;
  return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + kEpsilon)) : 1.0;
}

}  // namespace redspine
