// The MLP of a block, its inner features split over the tensor axis: down(activation(up(x))), or
// for SwiGLU down(silu(gate(x)) * up(x)) with gate and up split apart and computed by one product.
// Collective.
#pragma once

#include <string>

#include "model/linear.h"

namespace redspine {

class Mlp {
 public:
  /// One micro-batch of one layer, for the backward pass.
  struct Saved {
    Tensor up_BTf;      // before the activation; SwiGLU: gate, then up, [B, T, 2f]
    Tensor hidden_BTf;  // after it

    std::size_t bytes() const { return up_BTf.view().bytes() + hidden_BTf.view().bytes(); }
  };
  /// Gradients inside the layer; one for all layers.
  struct Scratch {
    Tensor dup_BTf;
    Tensor dhidden_BTf;  // SwiGLU only
  };

  struct Spec {
    LinearSpec up;  // gated: the gate's features before them
    LinearSpec down;
  };
  static Spec spec(const ModelConfig& config, TensorRank rank, const std::string& name);

  Mlp(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
      const std::string& name);

  Saved make_saved(std::int64_t batch, std::int64_t length) const;
  Scratch make_scratch(std::int64_t batch, std::int64_t length) const;

  /// All of `saved`, without the output: what a backward pass needs.
  void forward_to_hidden(ConstTensorView x_BTD, Saved& saved) const;
  /// The same, and out_BTD is written.
  void forward(TensorView out_BTD, ConstTensorView x_BTD, Saved& saved) const;

  struct Backward {
    TensorView dx_BTD;  // written, added up over the tensor axis
    ConstTensorView dout_BTD;
    ConstTensorView x_BTD;
  };
  void backward(const Backward& gradients, const Saved& saved, Scratch& scratch) const;

 private:
  Mlp(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
      const Spec& spec);

  ExecutionContext execution_;
  Activation activation_;
  std::int64_t num_local_features_;  // f
  ColumnLinear up_;
  RowLinear down_;
};

}  // namespace redspine
