// The kernels of the CPU: OpenMP over rows, columns or blocks, and vectorised loops inside.
//
// Each runs in the calling thread and its OpenMP team (the calling thread's default number), and
// has returned when its outputs are complete. Work is cut into pieces whose bounds do not depend on
// the number of threads, so neither do results. Stateless: one object serves any number of threads.
#pragma once

#include "tensor/kernels.h"

namespace redspine {

class CpuKernels final : public Kernels {
 public:
  void run(const Matmul& op) const override;
  void run(const MatmulGelu& op) const override;
  void run(const MatmulGeluBackward& op) const override;
  void run(const WeightGradient& op) const override;
  void run(const LayerNorm& op) const override;
  void run(const LayerNormBackward& op) const override;
  void run(const RmsNorm& op) const override;
  void run(const RmsNormBackward& op) const override;
  void run(const Rope& op) const override;
  void run(const Dropout& op) const override;
  void run(const Attention& op) const override;
  void run(const AttentionBackward& op) const override;
  void run(const Swiglu& op) const override;
  void run(const SwigluBackward& op) const override;
  void run(const Embedding& op) const override;
  void run(const EmbeddingBackward& op) const override;
  void run(const RowMax& op) const override;
  void run(const CrossEntropySums& op) const override;
  void run(const CrossEntropyLoss& op) const override;
  void run(const CrossEntropyBackward& op) const override;
  void run(const SumOfSquares& op) const override;
  void run(const AdamW& op) const override;
};

}  // namespace redspine
