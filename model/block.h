// One transformer block on the residual stream:
//   mid = x + drop(attention(norm1(x)));  out = mid + drop(mlp(norm2(mid))).
// An addition and the norm that reads the sum are one pass over the rows, so a block hands out the
// two summands of `out`, and the norm that comes next adds them. A forward pass only reads its
// inputs: again with the same ones it gives the same bits. Collective.
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
    // Forward: what a branch adds to the residual stream, until a norm has added it. Backward: the
    // gradient of that, where dropout makes it differ from the stream's.
    Tensor branch_BTD;
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

  /// The summands of `out`, which lie in `saved` and in `scratch`.
  struct Output {
    ConstTensorView residual_BTD;  // mid
    ConstTensorView branch_BTD;    // drop(mlp(norm2(mid))), until `scratch` is used again
  };

  /// saved.normed1_BTD = norm1(x), which forward() reads.
  void forward_norm1(ConstTensorView x_BTD, Saved& saved) const;
  /// The same of x = residual + branch, which may be the output of the block before.
  void add_forward_norm1(const Norm::Sum& x, Saved& saved) const;
  /// All that comes after norm1. Writes the rest of `saved`.
  Output forward(ConstTensorView x_BTD, Saved& saved, Scratch& scratch,
                 const DropoutSource& dropout) const;
  /// dresidual_BTD holds the gradient of the output and becomes that of the input.
  void backward(TensorView dresidual_BTD, ConstTensorView x_BTD, const Saved& saved,
                Scratch& scratch, const DropoutSource& dropout) const;

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
