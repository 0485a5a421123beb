#include "model/norm.h"

#include "parallel/mesh/tensor_parallel.h"

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

// With sequence parallelism a rank's gradients are of its own rows, and are added up after the
// backward pass; exact mode does so at once, and in one order.
Norm::Spec spec_of(const ExecutionContext& execution, const ModelConfig& config,
                   const std::string& name) {
  Norm::Spec spec = Norm::spec(config, execution.tensor_rank(), name);
  if (execution.rows == nullptr || execution.num_leaves > 0) return spec;
  for (ParameterSpec& weight : spec.weight) weight.local_gradient = LocalGradient::partial;
  for (ParameterSpec& bias : spec.bias) bias.local_gradient = LocalGradient::partial;
  return spec;
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
    : Norm(execution, store, config, spec_of(execution, config, name)) {}

Norm::Norm(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
           const Spec& spec)
    : execution_(execution),
      kind_(config.norm),
      epsilon_(static_cast<float>(config.norm_epsilon)),
      weight_(store.declare(spec.weight)),
      bias_(store.declare_if_any(spec.bias)) {}

Norm::Saved Norm::make_saved(std::int64_t num_rows) const {
  Saved saved;
  if (has_mean(kind_)) saved.mean_N = Tensor(execution_.device, DType::f32, {num_rows});
  saved.rstd_N = Tensor(execution_.device, DType::f32, {num_rows});
  return saved;
}

void Norm::forward(TensorView out_ND, ConstTensorView x_ND, Saved& saved) const {
  switch (kind_) {
    case NormKind::layernorm:
      ops::run(execution_.device, LayerNorm{.out = out_ND,
                                            .mean = saved.mean_N,
                                            .rstd = saved.rstd_N,
                                            .x = x_ND,
                                            .weight = weight_.value,
                                            .bias = value_or_none(bias_),
                                            .epsilon = epsilon_});
      break;
    case NormKind::rmsnorm:
      ops::run(execution_.device, RmsNorm{.out = out_ND,
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
      ops::run(execution_.device, AddLayerNorm{.out = out_ND,
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
      ops::run(execution_.device, AddRmsNorm{.out = out_ND,
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
  Device& device = execution_.device;
  const Gradients gradients{.dweight = weight_.gradient_to_add_to(device),
                            .dbias = gradient_or_none(device, bias_)};
  if (execution_.rows != nullptr && execution_.num_leaves > 0) {
    return backward_in_blocks(gradients, {dx_ND, dout_ND, x_ND}, saved);
  }
  run_backward(gradients, {dx_ND, dout_ND, x_ND}, saved.mean_N, saved.rstd_N);
}

void Norm::run_backward(const Gradients& gradients, const RowGradients& rows, ConstTensorView mean,
                        ConstTensorView rstd) const {
  switch (kind_) {
    case NormKind::layernorm:
      ops::run(execution_.device, LayerNormBackward{.dx = rows.dx_ND,
                                                    .dweight = gradients.dweight,
                                                    .dbias = gradients.dbias,
                                                    .dout = rows.dout_ND,
                                                    .x = rows.x_ND,
                                                    .mean = mean,
                                                    .rstd = rstd,
                                                    .weight = weight_.value});
      break;
    case NormKind::rmsnorm:
      ops::run(execution_.device, RmsNormBackward{.dx = rows.dx_ND,
                                                  .dweight = gradients.dweight,
                                                  .dout = rows.dout_ND,
                                                  .x = rows.x_ND,
                                                  .rstd = rstd,
                                                  .weight = weight_.value});
      break;
  }
}

// Each block of rows is added up by itself, and all ranks add the blocks one after another, as a
// rank that has all rows does.
void Norm::backward_in_blocks(const Gradients& gradients, const RowGradients& rows,
                              const Saved& saved) const {
  Device& device = execution_.device;
  const RowShares& shares = execution_.rows->shares;
  const TensorView sums_b2D = execution_.rows->block_sums;
  const std::int64_t cols = sums_b2D.cols();
  // Of a block: the sums for the weight, or for the bias where there is one.
  const auto sums_of = [&](std::int64_t block) {
    const TensorView sums = sums_b2D.slice(block, 1).reshape({2, cols});
    return Gradients{.dweight = sums.slice(0, 1).reshape({cols}),
                     .dbias = bias_ == nullptr ? TensorView() : sums.slice(1, 1).reshape({cols})};
  };
  const Range own = shares.own_blocks();
  device.zero(sums_b2D.slice(own.begin, own.size()));
  for (std::int64_t block = own.begin; block < own.end; ++block) {
    const Range& in_all = shares.blocks()[static_cast<std::size_t>(block)];
    const std::int64_t first = in_all.begin - shares.own().begin;
    const std::int64_t count = in_all.size();
    const ConstTensorView mean = saved.mean_N;
    run_backward(sums_of(block),
                 {rows.dx_ND.slice(first, count), rows.dout_ND.slice(first, count),
                  rows.x_ND.slice(first, count)},
                 mean.count() == 0 ? mean : mean.slice(first, count),
                 saved.rstd_N.view().slice(first, count));
  }
  gather_to_tensor_region(device, execution_.mesh, sums_b2D.reshape({sums_b2D.dim(0), 2 * cols}),
                          shares.blocks_of_ranks());
  for (std::int64_t block = 0; block < sums_b2D.dim(0); ++block) {
    const Gradients sums = sums_of(block);
    ops::run(device, Accumulate{.sum = gradients.dweight, .x = sums.dweight});
    if (bias_ != nullptr) ops::run(device, Accumulate{.sum = gradients.dbias, .x = sums.dbias});
  }
}

}  // namespace redspine
