#include "model/linear.h"

#include <cmath>

#include "parallel/mesh/tensor_parallel.h"

namespace redspine {
namespace {

void add_weight_gradients(Device& device, ParameterStack& weight, ParameterStack* bias,
                          ConstTensorView dout, ConstTensorView x) {
  ops::run(device, WeightGradient{.dweight = weight.gradient,
                                  .dbias = gradient_or_none(device, bias),
                                  .dy = dout,
                                  .x = x,
                                  .update = weight.take_update()});
}

ParameterStack& declare_column_weight(ParameterStore& store,
                                      const std::vector<OutputFeatures>& parts,
                                      std::int64_t in_features) {
  std::vector<ParameterSpec> specs;
  specs.reserve(parts.size());
  for (const OutputFeatures& part : parts) {
    specs.push_back({.name = part.name + ".weight",
                     .global_shape = {part.num_global, in_features},
                     .sharded_dim = 0,
                     .local = part.local,
                     .owned = part.owned,
                     .local_gradient = part.local_gradient,
                     .initial_std = weight_std()});
  }
  return store.declare(std::move(specs));
}

ParameterStack* declare_column_bias(ParameterStore& store, const std::vector<OutputFeatures>& parts,
                                    Bias bias) {
  if (bias == Bias::no) return nullptr;
  std::vector<ParameterSpec> specs;
  specs.reserve(parts.size());
  for (const OutputFeatures& part : parts) {
    specs.push_back({.name = part.name + ".bias",
                     .global_shape = {part.num_global},
                     .sharded_dim = 0,
                     .local = part.local,
                     .owned = part.owned,
                     .local_gradient = part.local_gradient});
  }
  return &store.declare(std::move(specs));
}

ParameterStack& declare_row_weight(ParameterStore& store, const RowLinear::Options& options) {
  ParameterSpec spec = sharded_parameter(
      options.name + ".weight", {options.out_features, options.in_features}, 1, options.local_in);
  spec.initial_std = options.initial_std;
  return store.declare({spec});
}

ParameterStack* declare_row_bias(ParameterStore& store, const RowLinear::Options& options,
                                 Bias bias, int tensor_rank) {
  if (bias == Bias::no) return nullptr;
  return &store.declare(
      {replicated_parameter(options.name + ".bias", {options.out_features}, tensor_rank)});
}

}  // namespace

float weight_std() { return 0.02F; }

float residual_weight_std(const ModelConfig& config) {
  return weight_std() / std::sqrt(2.0F * static_cast<float>(config.num_layers));
}

ColumnLinear::ColumnLinear(ExecutionContext execution, ParameterStore& store,
                           const std::vector<OutputFeatures>& parts, std::int64_t in_features,
                           Bias bias)
    : execution_(execution),
      weight_(declare_column_weight(store, parts, in_features)),
      bias_(declare_column_bias(store, parts, bias)) {}

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
  ops::run(device, Matmul{.out = dx_ND, .a = dout_No, .b = weight_.value});
  copy_to_tensor_region_backward(device, execution_.mesh, dx_ND, [&] {
    add_weight_gradients(device, weight_, bias_, dout_No, x_ND);
  });
}

RowLinear::RowLinear(ExecutionContext execution, ParameterStore& store, const Options& options,
                     Bias bias)
    : execution_(execution),
      weight_(declare_row_weight(store, options)),
      bias_(declare_row_bias(store, options, bias, execution.tensor_axis().rank())) {}

void RowLinear::forward(TensorView out_ND, ConstTensorView x_Ni) const {
  // One rank's summand carries the bias, so that the sum holds it once.
  const bool has_bias = execution_.tensor_axis().rank() == 0;
  ops::run(execution_.device, Matmul{.out = out_ND,
                                     .a = x_Ni,
                                     .b = weight_.value,
                                     .transpose_b = Transpose::yes,
                                     .bias = value_or_none(has_bias ? bias_ : nullptr)});
  reduce_from_tensor_region(execution_.device, execution_.mesh, out_ND);
}

void RowLinear::backward(TensorView dx_Ni, ConstTensorView dout_ND, ConstTensorView x_Ni) const {
  Device& device = execution_.device;
  ops::run(device, Matmul{.out = dx_Ni, .a = dout_ND, .b = weight_.value});
  add_weight_gradients(device, weight_, bias_, dout_ND, x_Ni);
}

void RowLinear::backward_gelu(const GeluInput& in, ConstTensorView dout_ND,
                              ConstTensorView gelu_Ni) const {
  Device& device = execution_.device;
  ops::run(device,
           MatmulGeluBackward{
               .dx = in.dx_Ni, .a = dout_ND, .b = weight_.value, .x = in.x_Ni, .kind = in.kind});
  add_weight_gradients(device, weight_, bias_, dout_ND, gelu_Ni);
}

}  // namespace redspine
