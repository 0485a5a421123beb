// LayerNorm or RMSNorm over the hidden dim, as the configuration says. Replicated over the tensor
// axis: input, output and gradients have the same bits on all of its ranks. With sequence
// parallelism each rank has its own rows, and the parameters' gradients are summands until the
// reducer has added them up; in exact mode backward() does, which is collective then.
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

    std::size_t bytes() const { return mean_N.view().bytes() + rstd_N.view().bytes(); }
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

  // What is accumulated over rows, and what is of each row.
  struct Gradients {
    TensorView dweight;
    TensorView dbias;
  };
  struct RowGradients {
    TensorView dx_ND;
    ConstTensorView dout_ND;
    ConstTensorView x_ND;
  };
  void run_backward(const Gradients& gradients, const RowGradients& rows, ConstTensorView mean,
                    ConstTensorView rstd) const;
  void backward_in_blocks(const Gradients& gradients, const RowGradients& rows,
                          const Saved& saved) const;

  ExecutionContext execution_;
  NormKind kind_;
  float epsilon_;
  ParameterStack& weight_;
  ParameterStack* bias_;  // null for none
};

}  // namespace redspine
