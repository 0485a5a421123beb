#include "trainer/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tensor/ops.h"
#include "tensor/portable_math.h"

namespace redspine {

Optimizer::Optimizer(const OptimizerConfig& config, Device& device, ParameterStore& store,
                     std::span<const HeldPart> parts, std::int64_t num_updates)
    : config_(config),
      device_(device),
      store_(store),
      num_parts_(parts.size()),
      exp_avg_(device, DType::f32, {store.shares().num_moments()}),
      exp_avg_sq_(device, DType::f32, {store.shares().num_moments()}),
      num_updates_(num_updates) {
  for (const ParameterShares::Run& place : store.shares().runs()) {
    runs_.push_back({.place = place, .parts = {}, .number = {}});
  }
  std::int64_t num_updated = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const HeldPart& part = parts[i];
    if (!part.is_updated) continue;
    const auto run = std::find_if(runs_.begin(), runs_.end(), [&part](const Run& candidate) {
      return part.begin < candidate.place.elements.end;
    });
    const bool decays = store.parameters()[part.parameter].spec.decays();
    run->parts.push_back({.begin = part.begin - run->place.elements.begin,
                          .count = part.count,
                          .weight_decay = decays ? config.weight_decay : 0.0,
                          .place = part.place});
    run->number.push_back(i);
    ++num_updated;
  }
  digests_ = Tensor(device, DType::i64, {num_updated, 2});
}

void Optimizer::update(double learning_rate, double gradient_scale) {
  ++num_updates_;
  const auto t = static_cast<double>(num_updates_);
  std::int64_t first_part = 0;
  for (const Run& run : runs_) {
    const auto [begin, end] = run.place.elements;
    const std::int64_t count = end - begin;
    const TensorView working = store_.working();
    ops::run(device_, AdamW{.parameter = store_.values().slice(begin, count),
                            .exp_avg = exp_avg_.view().slice(run.place.moments_begin, count),
                            .exp_avg_sq = exp_avg_sq_.view().slice(run.place.moments_begin, count),
                            .gradient = store_.gradients().slice(begin, count),
                            .working = working.count() == 0 ? working : working.slice(begin, count),
                            .digests = digests_.view().slice(first_part, std::ssize(run.parts)),
                            .parts = run.parts,
                            .gradient_scale = gradient_scale,
                            .learning_rate = learning_rate,
                            .beta1 = config_.beta1,
                            .beta2 = config_.beta2,
                            .epsilon = config_.epsilon,
                            .correction1 = 1.0 - portable::pow(config_.beta1, t),
                            .correction2 = 1.0 - portable::pow(config_.beta2, t)});
    first_part += std::ssize(run.parts);
  }
}

std::vector<Digest> Optimizer::digests() const {
  std::vector<std::int64_t> halves(static_cast<std::size_t>(digests_.count()));
  device_.download(host_view(std::span(halves)), digests_.view().reshape({std::ssize(halves)}));
  std::vector<Digest> digests(num_parts_);
  auto half = halves.begin();
  for (const Run& run : runs_) {
    for (const std::size_t number : run.number) {
      digests[number].low = static_cast<std::uint64_t>(*half++);
      digests[number].high = static_cast<std::uint64_t>(*half++);
    }
  }
  return digests;
}

double clip_factor(double norm, double max_norm) {
  constexpr double kEpsilon = 1e-6;
  return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + kEpsilon)) : 1.0;
}

}  // namespace redspine
