#include "model/norm.h"

namespace redspine {
namespace {

// Whether the rows are centred: by their mean before, and by a bias after.
bool has_mean(NormKind kind) {
  switch (kind) {
    case NormKind::layernorm:
      return true;
    case NormKind::rmsnorm:
      return false;
  }
  __builtin_unreachable();
}

}  // namespace

Norm::Spec Norm::spec(const ModelConfig& config, TensorRank rank, const std::string& name) {
  ParameterSpec weight = replicated_parameter(name + ".weight", {config.hidden_size}, rank.rank);
  weight.initial_mean = 1.0F;
  weight.read_as = ReadAs::f32;
  if (!has_mean(config.norm) || !config.bias) return {.weight = {weight}, .bias = {}};
  ParameterSpec bias = replicated_parameter(name + ".bias", {config.hidden_size}, rank.rank);
  bias.read_as = ReadAs::f32;
  return {.weight = {weight}, .bias = {bias}};
}

Norm::Norm(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
           const std::string& name)
    : Norm(execution, store, config, spec(config, execution.tensor_rank(), name)) {}

Norm::Norm(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
           const Spec& spec)
    : device_(execution.device),
      kind_(config.norm),
      epsilon_(static_cast<float>(config.norm_epsilon)),
      weight_(store.declare(spec.weight)),
      bias_(store.declare_if_any(spec.bias)) {}

Norm::Saved Norm::make_saved(std::int64_t num_rows) const {
  Saved saved;
  if (has_mean(kind_)) saved.mean_N = Tensor(device_, DType::f32, {num_rows});
  saved.rstd_N = Tensor(device_, DType::f32, {num_rows});
  return saved;
}

void Norm::forward(TensorView out_ND, ConstTensorView x_ND, Saved& saved) const {
  switch (kind_) {
    case NormKind::layernorm:
      ops::run(device_, LayerNorm{.out = out_ND,
                                  .mean = saved.mean_N,
                                  .rstd = saved.rstd_N,
                                  .x = x_ND,
                                  .weight = weight_.value,
                                  .bias = value_or_none(bias_),
                                  .epsilon = epsilon_});
      break;
    case NormKind::rmsnorm:
      ops::run(device_, RmsNorm{.out = out_ND,
                                .rstd = saved.rstd_N,
                                .x = x_ND,
                                .weight = weight_.value,
                                .epsilon = epsilon_});
      break;
  }
}

void Norm::add_forward(TensorView out_ND, const Sum& x, Saved& saved) const {
  switch (kind_) {
    case NormKind::layernorm:
      ops::run(device_, AddLayerNorm{.out = out_ND,
                                     .sum = x.sum_ND,
                                     .mean = saved.mean_N,
                                     .rstd = saved.rstd_N,
                                     .residual = x.residual_ND,
                                     .branch = x.branch_ND,
                                     .weight = weight_.value,
                                     .bias = value_or_none(bias_),
                                     .epsilon = epsilon_});
      break;
    case NormKind::rmsnorm:
      ops::run(device_, AddRmsNorm{.out = out_ND,
                                   .sum = x.sum_ND,
                                   .rstd = saved.rstd_N,
                                   .residual = x.residual_ND,
                                   .branch = x.branch_ND,
                                   .weight = weight_.value,
                                   .epsilon = epsilon_});
      break;
  }
}

void Norm::backward(TensorView dx_ND, ConstTensorView dout_ND, ConstTensorView x_ND,
                    const Saved& saved) const {
  switch (kind_) {
    case NormKind::layernorm:
      ops::run(device_, LayerNormBackward{.dx = dx_ND,
                                          .dweight = weight_.gradient_to_add_to(device_),
                                          .dbias = gradient_or_none(device_, bias_),
                                          .dout = dout_ND,
                                          .x = x_ND,
                                          .mean = saved.mean_N,
                                          .rstd = saved.rstd_N,
                                          .weight = weight_.value});
      break;
    case NormKind::rmsnorm:
      ops::run(device_, RmsNormBackward{.dx = dx_ND,
                                        .dweight = weight_.gradient_to_add_to(device_),
                                        .dout = dout_ND,
                                        .x = x_ND,
                                        .rstd = saved.rstd_N,
                                        .weight = weight_.value});
      break;
  }
}

}  // namespace redspine
