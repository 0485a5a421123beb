// One transformer block on the residual stream:
//   mid = x + drop(attention(norm1(x)));  out = mid + drop(mlp(norm2(mid))).
// The last addition is left to the norm that reads `out`, which adds as it goes through the rows.
// Collective.
#pragma once

#include "model/attention.h"
#include "model/mlp.h"
#include "model/norm.h"

namespace redspine {

class Block {
 public:
  /// One micro-batch, for the backward pass.
  struct Saved {
    Norm::Saved norm1;
    Tensor normed1_BTD;
    SelfAttention::Saved attention;
    Tensor mid_BTD;
    Norm::Saved norm2;
    Tensor normed2_BTD;
    Mlp::Saved mlp;
  };
  /// One for all blocks.
  struct Scratch {
    Tensor dbranch_BTD;  // gradient of a branch's output, where dropout makes it differ
    Tensor dnormed_BTD;
    SelfAttention::Scratch attention;
    Mlp::Scratch mlp;
  };

  /// Without the name of the block before those of its parameters.
  static LayerSpec spec(const ModelConfig& config, TensorRank rank);
  /// What that name is: "blocks.3."
  static std::string prefix(std::int64_t layer);

  Block(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
        const RopeTable* rope, std::int64_t layer);

  Saved make_saved(std::int64_t batch, std::int64_t length) const;
  Scratch make_scratch(std::int64_t batch, std::int64_t length) const;

  /// branch_BTD = drop(mlp(norm2(mid))), written: the output is residual(saved) + branch_BTD. The
  /// input comes in the same way.
  void forward(TensorView branch_BTD, const Norm::Input& in, const Saved& saved,
               const DropoutSource& dropout) const;
  static ConstTensorView residual(const Saved& saved) { return saved.mid_BTD; }
  /// dresidual_BTD holds the gradient of the output and becomes that of the input.
  void backward(TensorView dresidual_BTD, ConstTensorView x_BTD, const Saved& saved,
                const Scratch& scratch, const DropoutSource& dropout) const;

 private:
  ExecutionContext execution_;
  std::int64_t hidden_size_;
  std::int64_t layer_;
  Norm norm1_;
  SelfAttention attention_;
  Norm norm2_;
  Mlp mlp_;
};

}  // namespace redspine
