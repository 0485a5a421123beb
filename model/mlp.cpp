#include "model/mlp.h"

#include <algorithm>

namespace redspine {
namespace {

std::vector<OutputFeatures> up_features(const ModelConfig& config, TensorRank rank,
                                        const std::string& name) {
  const Range local = rank.share(config.ffn_size);
  const OutputFeatures up{.name = name + ".up",
                          .num_global = config.ffn_size,
                          .local = local,
                          .owned = local,
                          .leaves = rank.leaves(config.ffn_size)};
  if (!is_gated(config.activation)) return {up};
  OutputFeatures gate = up;
  gate.name = name + ".gate";
  return {gate, up};
}

// A second gate would be a second operation below.
static_assert(std::ranges::count_if(enum_words<Activation>(), is_gated,
                                    &EnumWord<Activation>::value) == 1);

}  // namespace

Mlp::Spec Mlp::spec(const ModelConfig& config, TensorRank rank, const std::string& name) {
  const Range local = rank.share(config.ffn_size);
  const Bias bias = config.bias ? Bias::yes : Bias::no;
  return {
      .up = column_linear("up", up_features(config, rank, name), config.hidden_size, bias, rank),
      .down = row_linear("down",
                         {.name = name + ".down",
                          .out_features = config.hidden_size,
                          .in_features = config.ffn_size,
                          .local_in = local,
                          .initial_std = residual_weight_std(config),
                          .leaves = rank.leaves(config.ffn_size)},
                         bias, rank)};
}

Mlp::Mlp(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
         const std::string& name)
    : Mlp(execution, store, config, spec(config, execution.tensor_rank(), name)) {}

Mlp::Mlp(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
         const Spec& spec)
    : execution_(execution),
      activation_(config.activation),
      num_local_features_(spec.down.in_features()),
      up_(execution, store, spec.up),
      down_(execution, store, spec.down) {}

Mlp::Saved Mlp::make_saved(std::int64_t batch, std::int64_t length) const {
  const std::int64_t up_size =
      is_gated(activation_) ? 2 * num_local_features_ : num_local_features_;
  Device& device = execution_.device;
  const DType dtype = execution_.dtype;
  return {.up_BTf = Tensor(device, dtype, {batch, length, up_size}),
          .hidden_BTf = Tensor(device, dtype, {batch, length, num_local_features_})};
}

Mlp::Scratch Mlp::make_scratch(std::int64_t batch, std::int64_t length) const {
  Saved like = make_saved(batch, length);
  Scratch scratch{.dup_BTf = std::move(like.up_BTf), .dhidden_BTf = {}};
  if (is_gated(activation_)) scratch.dhidden_BTf = std::move(like.hidden_BTf);
  return scratch;
}

void Mlp::forward_to_hidden(ConstTensorView x_BTD, Saved& saved) const {
  if (const auto kind = gelu_kind(activation_)) {
    up_.forward_gelu({.gelu_No = saved.hidden_BTf, .x_No = saved.up_BTf, .kind = *kind}, x_BTD);
  } else {
    up_.forward(saved.up_BTf, x_BTD);
    ops::run(execution_.device, Swiglu{.out = saved.hidden_BTf, .gate_up = saved.up_BTf});
  }
}

void Mlp::forward(TensorView out_BTD, ConstTensorView x_BTD, Saved& saved) const {
  forward_to_hidden(x_BTD, saved);
  down_.forward(out_BTD, saved.hidden_BTf);
}

void Mlp::backward(const Backward& gradients, const Saved& saved, Scratch& scratch) const {
  if (const auto kind = gelu_kind(activation_)) {
    down_.backward_gelu({.dx_Ni = scratch.dup_BTf, .x_Ni = saved.up_BTf, .kind = *kind},
                        gradients.dout_BTD, saved.hidden_BTf);
  } else {
    down_.backward(scratch.dhidden_BTf, gradients.dout_BTD, saved.hidden_BTf);
    ops::run(execution_.device, SwigluBackward{.dgate_up = scratch.dup_BTf,
                                               .dout = scratch.dhidden_BTf,
                                               .gate_up = saved.up_BTf});
  }
  up_.backward(gradients.dx_BTD, scratch.dup_BTf, gradients.x_BTD);
}

}  // namespace redspine
