// Linear layers split over the tensor axis (Shoeybi et al., arXiv 1909.08053). Weights are
// [out, in]; activations are [N, features] with N = B*T rows.
//
// ColumnLinear splits the output features: the input is whole on every rank, so its gradient is a
// sum over ranks. RowLinear splits the input features: its output is a sum over ranks, and its
// bias, which every rank holds, is in the summand of one of them. With sequence parallelism each
// rank gets only its own rows of these sums. All calls are collective.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/execution_context.h"
#include "model/parameters.h"
#include "parallel/mesh/tensor_parallel.h"

namespace redspine {

/// Standard deviation of freshly drawn weights, and that of the projections which add to the
/// residual stream: these are scaled by the number of them, 2 per layer, so that the stream's
/// variance does not grow with depth (GPT-2).
float weight_std();
float residual_weight_std(const ModelConfig& config);

enum class Bias { no, yes };

/// Some output features of a ColumnLinear, under a name of their own.
struct OutputFeatures {
  std::string name;  // "blocks.3.attention.query"; ".weight" and ".bias" are appended
  std::int64_t num_global;
  Range local;
  Range owned;
  LocalGradient local_gradient = LocalGradient::complete;
  std::vector<Range> leaves = {};  // exact mode: [leaf] of num_global
};

/// What a linear layer declares, all that its one product is made of. Everything that is counted of
/// a model (parameters, FLOPs, shapes of products, stored tensors) is derived from specs.
struct LinearSpec {
  std::string product;                // what reports call it: "up"
  std::vector<ParameterSpec> weight;  // [out, in] each, stacked
  std::vector<ParameterSpec> bias;    // [out] of each of the weights, stacked; or none at all
  /// Exact mode: of the sum over the dim that the tensor axis splits.
  std::optional<LeafSums> sums = std::nullopt;

  /// On this rank.
  std::int64_t in_features() const { return weight.front().local_shape()[1]; }
  std::int64_t out_features() const;
};

/// `parts` are computed by one product; their features lie side by side in the output.
LinearSpec column_linear(std::string product, const std::vector<OutputFeatures>& parts,
                         std::int64_t in_features, Bias bias, TensorRank rank);

/// What a layer, or some of them, declare.
struct LayerSpec {
  std::vector<ParameterSpec> parameters;  // in the order of the network; a bias after its weight
  std::vector<LinearSpec> products;       // the matrix products with parameters

  void add(const std::vector<ParameterSpec>& more);
  void add(const LinearSpec& linear);
};

class ColumnLinear {
 public:
  ColumnLinear(ExecutionContext execution, ParameterStore& store, const LinearSpec& spec);

  /// out_No = x W^T + b, written.
  void forward(TensorView out_No, ConstTensorView x_ND) const;

  struct GeluOutput {
    TensorView gelu_No;  // gelu(x W^T + b), written
    TensorView x_No;     // what gelu is applied to, written
    GeluKind kind;
  };
  void forward_gelu(const GeluOutput& out, ConstTensorView x_ND) const;

  /// dx_ND = dout W, written and added up over the tensor axis while the weight gradient is
  /// computed; dW += dout^T x; db += column sums of dout. Waits for what `activations` was given
  /// with sequence parallelism: x may be gathered there meanwhile.
  void backward(TensorView dx_ND, ConstTensorView dout_No, ConstTensorView x_ND) const;

 private:
  ExecutionContext execution_;
  ParameterStack& weight_;
  ParameterStack* bias_;  // null for none
  std::optional<LeafSums> sums_;
};

/// Some input features of a RowLinear on this rank, and its outputs, which are whole.
struct InputFeatures {
  std::string name;  // as above
  std::int64_t out_features;
  std::int64_t in_features;  // over all ranks
  Range local_in;
  float initial_std;
  std::vector<Range> leaves = {};  // exact mode: [leaf] of in_features
};
LinearSpec row_linear(std::string product, const InputFeatures& features, Bias bias,
                      TensorRank rank);

/// out = the product `product` added up over the tensor axis in the order of `sums`, beneath the
/// work that `meanwhile()` gives to the compute stream. With `row_shares` this rank's rows of it.
template <class Work>
void multiply_and_reduce_in_order(const ExecutionContext& execution, Matmul product,
                                  const LeafSums& sums, std::span<const Range> row_shares,
                                  const Work& meanwhile) {
  const TensorView out = product.out;
  std::vector<ConstTensorView> summands;
  if (!sums.is_empty()) {
    product.order = &sums.own;
    product.out = execution.leaf_scratch->place_of(sums.own, out);
    ops::run(execution.device, product);
    summands = summands_in(sums.own, product.out, out);
  }
  reduce_in_order(execution.device, execution.mesh, out, std::move(summands), sums.over_ranks,
                  row_shares, meanwhile);
}

class RowLinear {
 public:
  RowLinear(ExecutionContext execution, ParameterStore& store, const LinearSpec& spec);

  /// out_ND = b + sum over ranks of x W^T; written.
  void forward(TensorView out_ND, ConstTensorView x_Ni) const;
  /// dx_Ni = dout W, written; dW += dout^T x; db += column sums of dout.
  void backward(TensorView dx_Ni, ConstTensorView dout_ND, ConstTensorView x_Ni) const;

  struct GeluInput {
    TensorView dx_Ni;      // (dout W) * gelu'(x), written
    ConstTensorView x_Ni;  // what gelu was applied to
    GeluKind kind;
  };
  /// The same where the input was gelu_Ni = gelu(x), and on through gelu.
  void backward_gelu(const GeluInput& in, ConstTensorView dout_ND, ConstTensorView gelu_Ni) const;

 private:
  ExecutionContext execution_;
  ParameterStack& weight_;
  ParameterStack* bias_;
  std::optional<LeafSums> sums_;
};

}  // namespace redspine
