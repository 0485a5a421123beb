#include "model/linear.h"

#include <cmath>

namespace redspine {
namespace {

// dweight[out, in] += dout^T x; dbias += column sums of dout.
void accumulate_weight_gradients(Device& device, const ParameterStack& weight,
                                 const ParameterStack* bias, ConstTensorView dout,
                                 ConstTensorView x) {
  ops::run(device, Matmul{.out = weight.gradient,
                          .a = dout,
                          .b = x,
                          .transpose_a = Transpose::yes,
                          .update = Update::accumulate});
  if (bias != nullptr) ops::run(device, AddBiasBackward{.dbias = bias->gradient, .dy = dout});
}

const ParameterStack& declare_column_weight(ParameterStore& store,
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

const ParameterStack* declare_column_bias(ParameterStore& store,
                                          const std::vector<OutputFeatures>& parts, Bias bias) {
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

const ParameterStack& declare_row_weight(ParameterStore& store, const RowLinear::Options& options) {
  ParameterSpec spec = sharded_parameter(
      options.name + ".weight", {options.out_features, options.in_features}, 1, options.local_in);
  spec.initial_std = options.initial_std;
  return store.declare({spec});
}

const ParameterStack* declare_row_bias(ParameterStore& store, const RowLinear::Options& options,
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

ColumnLinear::ColumnLinear(Placement placement, ParameterStore& store,
                           const std::vector<OutputFeatures>& parts, std::int64_t in_features,
                           Bias bias)
    : placement_(placement),
      weight_(declare_column_weight(store, parts, in_features)),
      bias_(declare_column_bias(store, parts, bias)) {}

void ColumnLinear::forward(TensorView out_No, ConstTensorView x_ND) const {
  Device& device = placement_.device;
  ops::run(device,
           Matmul{.out = out_No, .a = x_ND, .b = weight_.value, .transpose_b = Transpose::yes});
  if (bias_ != nullptr) ops::run(device, AddBias{.x = out_No, .bias = bias_->value});
}

void ColumnLinear::backward(TensorView dx_ND, ConstTensorView dout_No, ConstTensorView x_ND) const {
  Device& device = placement_.device;
  ops::run(device, Matmul{.out = dx_ND, .a = dout_No, .b = weight_.value});
  device.order(Stream::compute, Stream::activations);
  placement_.tensor_axis().all_reduce(dx_ND, ReduceOp::sum, Stream::activations);
  accumulate_weight_gradients(device, weight_, bias_, dout_No, x_ND);
  device.order(Stream::activations, Stream::compute);
}

RowLinear::RowLinear(Placement placement, ParameterStore& store, const Options& options, Bias bias)
    : placement_(placement),
      weight_(declare_row_weight(store, options)),
      bias_(declare_row_bias(store, options, bias, placement.tensor_axis().rank())) {}

void RowLinear::forward(TensorView out_ND, ConstTensorView x_Ni) const {
  Device& device = placement_.device;
  ops::run(device,
           Matmul{.out = out_ND, .a = x_Ni, .b = weight_.value, .transpose_b = Transpose::yes});
  placement_.all_reduce_over_tensor(out_ND, ReduceOp::sum);
  if (bias_ != nullptr) ops::run(device, AddBias{.x = out_ND, .bias = bias_->value});
}

void RowLinear::backward(TensorView dx_Ni, ConstTensorView dout_ND, ConstTensorView x_Ni) const {
  Device& device = placement_.device;
  ops::run(device, Matmul{.out = dx_Ni, .a = dout_ND, .b = weight_.value});
  accumulate_weight_gradients(device, weight_, bias_, dout_ND, x_Ni);
}

}  // namespace redspine
