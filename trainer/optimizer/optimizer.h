// AdamW over all parameters of a rank, with moments in fp32. Local: the gradients are already
// added up, so every rank that holds a parameter makes the same update. Whether it did shows in the
// digests.
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

  /// Of each part's values after the last update; waits for it.
  std::vector<Digest> digests() const;

  /// Updates so far; bias correction depends on it, not on the step, which may have been skipped.
  std::int64_t num_updates() const { return num_updates_; }
  /// The moments, laid out as the store's flat buffers.
  TensorView exp_avg() { return exp_avg_; }
  ConstTensorView exp_avg() const { return exp_avg_; }
  TensorView exp_avg_sq() { return exp_avg_sq_; }
  ConstTensorView exp_avg_sq() const { return exp_avg_sq_; }

 private:
  OptimizerConfig config_;
  Device& device_;
  ParameterStore& store_;
  std::vector<AdamWPart> parts_;  // of the flat buffers, which are updated at once
  Tensor exp_avg_;
  Tensor exp_avg_sq_;
  Tensor digests_;  // [parts, 2]
  std::int64_t num_updates_;
};

/// The factor that brings a gradient of global norm `norm` down to `max_norm`, as
/// torch.nn.utils.clip_grad_norm_ does; 1 where it is below, or where max_norm is 0.
double clip_factor(double norm, double max_norm);

}  // namespace redspine
