#include "data/blend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "tensor/error.h"

namespace redspine {

Blend::Blend(std::span<const double> weights)
    : parts_(weights.size()), counts_(weights.size()), debts_(weights.size()) {
  assert(!weights.empty());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  // Rounding the running sums, not the weights, makes the parts add up to kNumParts.
  double sum = 0.0;
  std::int64_t num_given = 0;
  std::int64_t divisor = 0;
  for (std::size_t e = 0; e < weights.size(); ++e) {
    sum += weights[e];
    const std::int64_t num_parts = std::llround(sum / total * static_cast<double>(kNumParts));
    parts_[e] = num_parts - num_given;
    num_given = num_parts;
    divisor = std::gcd(divisor, parts_[e]);
    if (parts_[e] == 0) {
      throw ConfigError(
          fmt::format("data.train[{}].weight", e),
          fmt::format("is {}, {:.1e} of the sum of all weights; legal: at least {:.1e} of it",
                      weights[e], weights[e] / total, 1.0 / static_cast<double>(kNumParts)));
    }
  }
  for (std::int64_t& parts : parts_) parts /= divisor;
  num_parts_ = kNumParts / divisor;
}

Blend::Pick Blend::next() {
  // An entry is due once picking it would not push it further than the bound ahead of its share,
  // debt / num_parts >= 1 / (2k-2); its deadline is the time left until it falls behind the bound,
  // (1 - 1/(2k-2) - debt / num_parts) * num_parts / parts. Both are compared without a division.
  const auto bound = static_cast<std::int64_t>(std::max<std::size_t>(2 * parts_.size() - 2, 1));
  std::size_t best = parts_.size();
  std::int64_t best_time = 0;
  for (std::size_t e = 0; e < parts_.size(); ++e) {
    debts_[e] += parts_[e];
    if (bound * debts_[e] < num_parts_) continue;
    const std::int64_t time = (bound - 1) * num_parts_ - bound * debts_[e];
    if (best == parts_.size() || time * parts_[best] < best_time * parts_[e]) {
      best = e;
      best_time = time;
    }
  }
  assert(best < parts_.size());
  debts_[best] -= num_parts_;
  ++position_;
  return {static_cast<int>(best), counts_[best]++};
}

void Blend::seek(std::int64_t sample) {
  assert(sample >= 0);
  const bool is_ahead_within_period = sample >= position_ && sample - position_ < num_parts_;
  if (!is_ahead_within_period) {
    // At the end of each period every entry has had exactly its parts, and no debt is left.
    const std::int64_t num_periods = sample / num_parts_;
    position_ = num_periods * num_parts_;
    for (std::size_t e = 0; e < parts_.size(); ++e) counts_[e] = num_periods * parts_[e];
    std::fill(debts_.begin(), debts_.end(), 0);
  }
  while (position_ < sample) next();
}

}  // namespace redspine
