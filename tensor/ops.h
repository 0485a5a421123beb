// The one door to the kernels: `ops::run(device, Matmul{...})` checks dtypes and shapes, then calls
// the device's kernel. A mismatch is an Error that names the operation and the shapes.
#pragma once

#include "tensor/device.h"
#include "tensor/kernels.h"

namespace redspine::ops {

void check(const Matmul& op);
void check(const MatmulGelu& op);
void check(const MatmulGeluBackward& op);
void check(const WeightGradient& op);
void check(const LayerNorm& op);
void check(const LayerNormBackward& op);
void check(const RmsNorm& op);
void check(const RmsNormBackward& op);
void check(const Rope& op);
void check(const Dropout& op);
void check(const Attention& op);
void check(const AttentionBackward& op);
void check(const Swiglu& op);
void check(const SwigluBackward& op);
void check(const Embedding& op);
void check(const EmbeddingBackward& op);
void check(const RowMax& op);
void check(const CrossEntropySums& op);
void check(const CrossEntropyLoss& op);
void check(const CrossEntropyBackward& op);
void check(const SumOfSquares& op);
void check(const AdamW& op);

template <class Op>
void run(const Device& device, const Op& op) {
  check(op);
  device.kernels().run(op);
}

}  // namespace redspine::ops
