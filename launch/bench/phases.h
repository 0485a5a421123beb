// A device that times its kernels: where the time of a step goes. It stands in front
// of another device for as long as something is measured; whoever does not use it pays nothing.
// Work is waited for after each kernel, so times are right where kernels block, as on a CPU. Local.
#pragma once

#include <array>
#include <memory>

#include "tensor/device.h"

namespace redspine {

enum class Phase {
  embedding,
  norms,
  attention,
  linear,  // with bias and GELU
  head_and_loss,
  norms_backward,
  attention_backward,
  input_gradients,  // of linear layers, with GELU's slope
  weight_gradients,
  other_kernels,  // SwiGLU, rotary positions, dropout, and their backward passes
  embedding_backward,
  fills_and_copies,
  gradient_norm,
  optimizer,
  waiting,  // for other ranks
};
inline constexpr std::size_t kNumPhases = 15;
const char* name_of(Phase phase);

struct PhaseTimes {
  std::array<double, kNumPhases> seconds{};

  double& operator[](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
  double sum() const;
};

/// `inner` and `times`, to which everything is added, outlive it. Products with a dim of
/// `num_head_columns` are the head's.
std::unique_ptr<Device> make_timed_device(Device& inner, PhaseTimes& times,
                                          std::int64_t num_head_columns);

}  // namespace redspine
