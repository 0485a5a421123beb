#include "model/linear.h"

#include <cmath>

#include "parallel/mesh/tensor_parallel.h"

namespace redspine {
namespace {

void add_weight_gradients(const ExecutionContext& execution, ParameterStack& weight,
                          ParameterStack* bias, ConstTensorView dout, ConstTensorView x) {
  ops::run(execution.device,
           WeightGradient{.dweight = weight.gradient,
                          .dbias = gradient_or_none(execution.device, bias),
                          .dy = dout,
                          .x = x,
                          .update = weight.take_update(),
                          .sample_rows = execution.num_leaves > 0 ? x.dim(1) : 0});
}

}  // namespace

float weight_std() { return 0.02F; }

float residual_weight_std(const ModelConfig& config) {
  return weight_std() / std::sqrt(2.0F * static_cast<float>(config.num_layers));
}

std::int64_t LinearSpec::out_features() const {
  std::int64_t rows = 0;
  for (const ParameterSpec& part : weight) rows += part.local_shape()[0];
  return rows;
}

LinearSpec column_linear(std::string product, const std::vector<OutputFeatures>& parts,
                         std::int64_t in_features, Bias bias, TensorRank rank) {
  LinearSpec spec{.product = std::move(product), .weight = {}, .bias = {}};
  std::vector<LeafPart> leaf_parts;
  for (const OutputFeatures& part : parts) {
    leaf_parts.push_back({part.leaves, part.local});
    ParameterSpec parameter{.name = part.name + ".weight",
                            .global_shape = {part.num_global, in_features},
                            .sharded_dim = 0,
                            .local = part.local,
                            .owned = part.owned,
                            .local_gradient = part.local_gradient,
                            .initial_std = weight_std()};
    spec.weight.push_back(parameter);
    if (bias == Bias::no) continue;
    parameter.name = part.name + ".bias";
    parameter.global_shape = {part.num_global};
    parameter.initial_std = 0.0F;
    spec.bias.push_back(parameter);
  }
  if (rank.is_exact()) spec.sums = leaf_sums(rank, leaf_parts);
  return spec;
}

LinearSpec row_linear(std::string product, const InputFeatures& features, Bias bias,
                      TensorRank rank) {
  LinearSpec spec{.product = std::move(product), .weight = {}, .bias = {}};
  spec.weight = {sharded_parameter(features.name + ".weight",
                                   {features.out_features, features.in_features}, 1,
                                   features.local_in)};
  spec.weight.front().initial_std = features.initial_std;
  if (bias == Bias::yes) {
    spec.bias = {replicated_parameter(features.name + ".bias", {features.out_features}, rank.rank)};
  }
  if (rank.is_exact()) {
    const LeafPart part{features.leaves, features.local_in};
    spec.weight.front().leaf_ends = leaf_ends(part);
    spec.sums = leaf_sums(rank, {part});
  }
  return spec;
}

void LayerSpec::add(const std::vector<ParameterSpec>& more) {
  parameters.insert(parameters.end(), more.begin(), more.end());
}

void LayerSpec::add(const LinearSpec& linear) {
  for (std::size_t i = 0; i < linear.weight.size(); ++i) {
    parameters.push_back(linear.weight[i]);
    if (!linear.bias.empty()) parameters.push_back(linear.bias[i]);
  }
  products.push_back(linear);
}

ColumnLinear::ColumnLinear(ExecutionContext execution, ParameterStore& store,
                           const LinearSpec& spec)
    : execution_(execution),
      weight_(store.declare(spec.weight)),
      bias_(store.declare_if_any(spec.bias)),
      sums_(spec.sums) {}

void ColumnLinear::forward(TensorView out_No, ConstTensorView x_ND) const {
  ops::run(execution_.device, Matmul{.out = out_No,
                                     .a = x_ND,
                                     .b = weight_.value,
                                     .transpose_b = Transpose::yes,
                                     .bias = value_or_none(bias_)});
}

void ColumnLinear::forward_gelu(const GeluOutput& out, ConstTensorView x_ND) const {
  ops::run(execution_.device, MatmulGelu{.out = out.gelu_No,
                                         .x = out.x_No,
                                         .a = x_ND,
                                         .b = weight_.value,
                                         .bias = value_or_none(bias_),
                                         .kind = out.kind});
}

void ColumnLinear::backward(TensorView dx_ND, ConstTensorView dout_No, ConstTensorView x_ND) const {
  Device& device = execution_.device;
  const Matmul product{.out = dx_ND, .a = dout_No, .b = weight_.value};
  const auto add_to_weights = [&] {
    add_weight_gradients(execution_, weight_, bias_, dout_No, x_ND);
  };
  const std::span<const Range> row_shares = execution_.row_shares();
  // The input's rows of other ranks may still be on their way.
  if (!row_shares.empty()) device.order(Stream::activations, Stream::compute);
  if (sums_) {
    multiply_and_reduce_in_order(execution_, product, *sums_, row_shares, add_to_weights);
    return;
  }
  ops::run(device, product);
  copy_to_tensor_region_backward(device, execution_.mesh, dx_ND, row_shares, add_to_weights);
}

RowLinear::RowLinear(ExecutionContext execution, ParameterStore& store, const LinearSpec& spec)
    : execution_(execution),
      weight_(store.declare(spec.weight)),
      bias_(store.declare_if_any(spec.bias)),
      sums_(spec.sums) {}

void RowLinear::forward(TensorView out_ND, ConstTensorView x_Ni) const {
  if (sums_) {
    const Matmul product{
        .out = out_ND, .a = x_Ni, .b = weight_.value, .transpose_b = Transpose::yes};
    multiply_and_reduce_in_order(execution_, product, *sums_, execution_.row_shares(), [] {});
    if (bias_ != nullptr) {
      ops::run(execution_.device, AddBias{.x = execution_.own_rows(out_ND), .bias = bias_->value});
    }
    return;
  }
  // One rank's summand carries the bias, so that the sum holds it once.
  const bool has_bias = execution_.tensor_axis().rank() == 0;
  ops::run(execution_.device, Matmul{.out = out_ND,
                                     .a = x_Ni,
                                     .b = weight_.value,
                                     .transpose_b = Transpose::yes,
                                     .bias = value_or_none(has_bias ? bias_ : nullptr)});
  reduce_from_tensor_region(execution_.device, execution_.mesh, out_ND, execution_.row_shares());
}

void RowLinear::backward(TensorView dx_Ni, ConstTensorView dout_ND, ConstTensorView x_Ni) const {
  Device& device = execution_.device;
  ops::run(device, Matmul{.out = dx_Ni, .a = dout_ND, .b = weight_.value});
  add_weight_gradients(execution_, weight_, bias_, dout_ND, x_Ni);
}

void RowLinear::backward_gelu(const GeluInput& in, ConstTensorView dout_ND,
                              ConstTensorView gelu_Ni) const {
  Device& device = execution_.device;
  ops::run(device,
           MatmulGeluBackward{
               .dx = in.dx_Ni, .a = dout_ND, .b = weight_.value, .x = in.x_Ni, .kind = in.kind});
  add_weight_gradients(execution_, weight_, bias_, dout_ND, gelu_Ni);
}

}  // namespace redspine
