// Causal self-attention, heads split over the tensor axis. Query, key and value come from one
// product, the output projection is a RowLinear. Collective.
#pragma once

#include <string>

#include "model/head_sums.h"
#include "model/linear.h"
#include "model/rope.h"

namespace redspine {

class SelfAttention {
 public:
  /// One micro-batch of one layer, for the backward pass.
  struct Saved {
    Tensor qkv;      // [B, T, (h + 2g) * K], after the rotation
    Tensor context;  // [B, T, h * K]
    Tensor log_sum_exp_BhT;

    std::size_t bytes() const {
      return qkv.view().bytes() + context.view().bytes() + log_sum_exp_BhT.view().bytes();
    }
  };
  /// Gradients inside the layer; one for all layers.
  struct Scratch {
    Tensor dqkv;
    Tensor dcontext;
    Tensor dkv_sums;  // exact mode, where ranks share key/value heads: AttentionBackward::dkv_sums
    Tensor dkv_2BTK;  // and the sum over ranks of one head
  };

  struct Spec {
    LinearSpec qkv;
    LinearSpec output;
  };
  static Spec spec(const ModelConfig& config, TensorRank rank, const std::string& name);

  /// `rope` is null for learned positions, and outlives the layer otherwise.
  SelfAttention(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
                const RopeTable* rope, const std::string& name);

  Saved make_saved(std::int64_t batch, std::int64_t length) const;
  Scratch make_scratch(std::int64_t batch, std::int64_t length) const;

  /// All of `saved`, without the output: what a backward pass needs.
  void forward_to_context(ConstTensorView x_BTD, Saved& saved, const DropoutKey& dropout) const;
  /// The same, and out_BTD is written.
  void forward(TensorView out_BTD, ConstTensorView x_BTD, Saved& saved,
               const DropoutKey& dropout) const;

  struct Backward {
    TensorView dx_BTD;  // written, added up over the tensor axis
    ConstTensorView dout_BTD;
    ConstTensorView x_BTD;
  };
  void backward(const Backward& gradients, const Saved& saved, Scratch& scratch,
                const DropoutKey& dropout) const;

 private:
  SelfAttention(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
                const RopeTable* rope, const Spec& spec);

  void rotate(TensorView qkv, RopeDirection direction) const;
  void add_shared_heads(Scratch& scratch) const;

  ExecutionContext execution_;
  HeadLayout heads_;
  std::optional<HeadSums> sums_;  // exact mode
  const RopeTable* rope_;
  ColumnLinear qkv_;
  RowLinear output_;
};

}  // namespace redspine
