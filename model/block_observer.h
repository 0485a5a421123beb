// Looks on while a model trains: for checks of what its blocks compute, and faults on purpose.
// Local.
#pragma once

#include "model/block.h"

namespace redspine {

/// A block's part in one micro-batch. Views of what the model works with, until the call returns.
struct BlockPass {
  std::size_t block;
  TensorView x_nD;          // its input, on the residual stream
  TensorView out_nD;        // its output
  TensorView dresidual_nD;  // the gradient of its output; after its backward pass, of its input
  Block::Saved saved;       // its activations, as the backward pass reads them
};

class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual void before_backward(const BlockPass& pass) = 0;
  /// The block's gradients are those of this rank, not yet added up over the data axis.
  virtual void after_backward(const BlockPass& pass) = 0;
};

}  // namespace redspine
