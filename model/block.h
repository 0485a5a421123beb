// One transformer block on the residual stream:
//   mid = x + drop(attention(norm1(x)));  out = mid + drop(mlp(norm2(mid))).
// An addition and the norm that reads the sum are one pass over the rows, so a block hands out the
// two summands of `out`, and the norm that comes next adds them. A forward pass only reads its
// inputs: again with the same ones it gives the same bits, so a backward pass may have it run again
// in place of keeping what it left. Collective.
//
// The residual stream is this rank's part of it: all rows, or with sequence parallelism some.
#pragma once

#include "model/attention.h"
#include "model/mlp.h"
#include "model/norm.h"

namespace redspine {

class Block {
 public:
  /// What the first half of a block leaves of one micro-batch, for the backward pass ...
  struct AttentionSaved {
    Norm::Saved norm1;
    Tensor normed1_nD;
    SelfAttention::Saved attention;

    std::size_t bytes() const {
      return norm1.bytes() + normed1_nD.view().bytes() + attention.bytes();
    }
  };
  /// ... and the second half.
  struct MlpSaved {
    Tensor mid_nD;
    Norm::Saved norm2;
    Tensor normed2_nD;
    Mlp::Saved mlp;

    std::size_t bytes() const {
      return mid_nD.view().bytes() + norm2.bytes() + normed2_nD.view().bytes() + mlp.bytes();
    }
  };
  /// Either may be one for all blocks: it holds what the last of them has written.
  struct Saved {
    AttentionSaved& attention;
    MlpSaved& mlp;
  };
  /// One for all blocks.
  struct Scratch {
    // Forward: what a branch adds to the residual stream, until a norm has added it. Backward: the
    // gradient of that, where dropout makes it differ from the stream's or other ranks have rows
    // of it.
    Tensor branch_BTD;
    // The gradient of what a branch reads, or where ranks have rows of it the whole that it reads.
    Tensor normed_BTD;
    SelfAttention::Scratch attention;
    Mlp::Scratch mlp;
  };

  /// Without the name of the block before those of its parameters.
  static LayerSpec spec(const ModelConfig& config, TensorRank rank);
  /// What that name is: "blocks.3."
  static std::string prefix(std::int64_t layer);

  Block(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
        const RopeTable* rope, std::int64_t layer);

  AttentionSaved make_attention_saved(std::int64_t batch, std::int64_t length) const;
  MlpSaved make_mlp_saved(std::int64_t batch, std::int64_t length) const;
  Scratch make_scratch(std::int64_t batch, std::int64_t length) const;

  /// The summands of `out`, which lie in `saved` and in `scratch`.
  struct Output {
    ConstTensorView residual_nD;  // mid
    ConstTensorView branch_nD;    // drop(mlp(norm2(mid))), until `scratch` is used again
  };

  /// saved.normed1_nD = norm1(x), which forward() reads.
  void forward_norm1(ConstTensorView x_nD, AttentionSaved& saved) const;
  /// The same of x = residual + branch, which may be the output of the block before.
  void add_forward_norm1(const Norm::Sum& x, AttentionSaved& saved) const;
  /// All that comes after norm1. Writes the rest of `saved`.
  Output forward(ConstTensorView x_nD, const Saved& saved, Scratch& scratch,
                 const DropoutSource& dropout) const;
  /// All of `saved` again, from the block's input. What comes after it, the last product of the
  /// MLP, no backward pass needs.
  void recompute(ConstTensorView x_nD, const Saved& saved, Scratch& scratch,
                 const DropoutSource& dropout) const;
  /// The same of the first half alone.
  void recompute_attention(ConstTensorView x_nD, AttentionSaved& saved, Scratch& scratch,
                           const DropoutSource& dropout) const;
  /// From here on it is the block of this layer, as far as dropout is concerned; its parameters
  /// keep their names.
  void stand_in_for(std::int64_t layer) { layer_ = layer; }

  /// dresidual_nD holds the gradient of the output and becomes that of the input.
  void backward(TensorView dresidual_nD, ConstTensorView x_nD, const Saved& saved, Scratch& scratch,
                const DropoutSource& dropout) const;

 private:
  // What a branch's backward pass is given.
  struct BranchGradients {
    TensorView dx_BTD;
    ConstTensorView dout_BTD;
    ConstTensorView x_BTD;
  };
  BranchGradients begin_branch_backward(ConstTensorView dresidual_nD, ConstTensorView normed_nD,
                                        Scratch& scratch, const DropoutKey& dropout) const;
  ConstTensorView all_rows(ConstTensorView normed_nD, Scratch& scratch) const;
  void forward_to_norm2(ConstTensorView x_nD, const Saved& saved, Scratch& scratch,
                        const DropoutSource& dropout) const;

  ExecutionContext execution_;
  std::int64_t hidden_size_;
  std::int64_t layer_;
  Norm norm1_;
  SelfAttention attention_;
  Norm norm2_;
  Mlp mlp_;
};

}  // namespace redspine
