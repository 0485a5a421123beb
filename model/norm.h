// LayerNorm or RMSNorm over the hidden dim, as the configuration says. Replicated over the tensor
// axis: input, output and gradients have the same bits on all of its ranks.
#pragma once

#include <string>

#include "model/config.h"
#include "model/execution_context.h"
#include "model/parameters.h"

namespace redspine {

class Norm {
 public:
  /// The statistics of each row, for the backward pass.
  struct Saved {
    Tensor mean_N;  // layer norm only
    Tensor rstd_N;
  };

  struct Spec {
    std::vector<ParameterSpec> weight;
    std::vector<ParameterSpec> bias;  // or none
  };
  static Spec spec(const ModelConfig& config, TensorRank rank, const std::string& name);

  Norm(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
       const std::string& name);

  Saved make_saved(std::int64_t num_rows) const;

  /// What the residual stream holds after a branch.
  struct Sum {
    TensorView sum_ND;  // residual + branch, written
    ConstTensorView residual_ND;
    ConstTensorView branch_ND;
  };
  /// out = norm(x), written.
  void forward(TensorView out_ND, ConstTensorView x_ND, Saved& saved) const;
  /// The same of x = residual + branch, in one pass.
  void add_forward(TensorView out_ND, const Sum& x, Saved& saved) const;
  /// Accumulates into dx, which is the gradient of the residual stream, and into the parameters.
  void backward(TensorView dx_ND, ConstTensorView dout_ND, ConstTensorView x_ND,
                const Saved& saved) const;

 private:
  Norm(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
       const Spec& spec);

  Device& device_;
  NormKind kind_;
  float epsilon_;
  ParameterStack& weight_;
  ParameterStack* bias_;  // null for none
};

}  // namespace redspine
