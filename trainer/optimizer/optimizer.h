// AdamW over what a rank updates (ParameterStore::shares), with moments in fp32. Local: the
// gradients are already added up, so every rank that updates a parameter makes the same update.
// Whether it did shows in the digests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/parameters.h"
#include "tensor/kernels.h"
#include "trainer/digest/held_parts.h"
#include "trainer/optimizer/config.h"

namespace redspine {

class Optimizer {
 public:
  /// `device` and `store` outlive it. `parts` are all that the rank holds. Goes on after
  /// `num_updates`, whose moments are still to be loaded if there were any.
  Optimizer(const OptimizerConfig& config, Device& device, ParameterStore& store,
            std::span<const HeldPart> parts, std::int64_t num_updates = 0);

  /// One update with gradient * gradient_scale, of working copies too. Matrices decay, vectors do
  /// not.
  void update(double learning_rate, double gradient_scale);

  /// [part]: of the values after the last update, for which this waits; none for a part that other
  /// ranks update.
  std::vector<Digest> digests() const;

  /// Updates so far; bias correction depends on it, not on the step, which may have been skipped.
  std::int64_t num_updates() const { return num_updates_; }
  /// The moments, laid out as the store's shares say: without any, as its flat buffers.
  TensorView exp_avg() { return exp_avg_; }
  ConstTensorView exp_avg() const { return exp_avg_; }
  TensorView exp_avg_sq() { return exp_avg_sq_; }
  ConstTensorView exp_avg_sq() const { return exp_avg_sq_; }

 private:
  OptimizerConfig config_;
  Device& device_;
  ParameterStore& store_;
  struct Run {
    ParameterShares::Run place;
    std::vector<AdamWPart> parts;     // from the beginning of the run
    std::vector<std::size_t> number;  // [part]: among all that the rank holds
  };

  std::vector<Run> runs_;  // each updated at once
  std::size_t num_parts_;
  Tensor exp_avg_;
  Tensor exp_avg_sq_;
  Tensor digests_;  // [parts of all runs, 2]
  std::int64_t num_updates_;
};

/// The factor that brings a gradient of global norm `norm` down to `max_norm`, as
/// torch.nn.utils.clip_grad_norm_ does; 1 where it is below, or where max_norm is 0.
double clip_factor(double norm, double max_norm);

}  // namespace redspine
