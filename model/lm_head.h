// The language-model head and its cross entropy, the vocabulary split over the tensor axis. Works
// through the rows in chunks, so that the logits of a whole batch never exist at once; in training
// a chunk's gradient is taken while its logits are at hand. Collective.
#pragma once

#include "model/config.h"
#include "model/embedding.h"
#include "model/execution_context.h"
#include "model/linear.h"
#include "model/parameters.h"
#include "parallel/scalar_sum.h"

namespace redspine {

/// The rows of a chunk: as even as a bound on its logits allows.
std::int64_t head_chunk_rows(const Device& device, std::int64_t vocab_size, std::int64_t num_rows);

class LmHead {
 public:
  /// The product is there always, its weight among the parameters only where it is not tied.
  static LayerSpec spec(const ModelConfig& config, TensorRank rank);

  /// Tied: uses the weights of `embedding`, which outlives the head.
  LmHead(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
         const TokenEmbedding& embedding);
  /// Makes the chunk buffers for batches of `num_rows` = B*T, samples of `sample_rows` = T. Once,
  /// before any other call.
  void allocate(std::int64_t num_rows, std::int64_t sample_rows);

  /// Adds the row losses, in f64, to what take_loss_sum() gives. Targets of -1 do not count.
  void forward(ConstTensorView x_ND, ConstTensorView targets_N);
  /// The same, and the gradients of scale * loss: dx_ND is written and added up over the tensor
  /// axis (with sequence parallelism this rank's rows of it), the weight's is accumulated.
  void forward_backward(TensorView dx_ND, ConstTensorView x_ND, ConstTensorView targets_N,
                        float scale);
  /// This rank's columns of the logits, [N, v], written.
  void logits(TensorView logits_Nv, ConstTensorView x_ND) const;

  /// Of the logits of a chunk, on the device.
  std::size_t logits_bytes() const { return logits_.view().bytes(); }

  /// Downloads the sum of the losses since the last call and sets it to zero.
  ScalarSum take_loss_sum();

 private:
  struct Chunk {
    TensorView logits_Cv;
    TensorView max_C;
    TensorView sums_2C;
    ConstTensorView x_CD;
    ConstTensorView targets_C;
  };
  Chunk forward_chunk(ConstTensorView x_CD, ConstTensorView targets_C);
  std::vector<Range> chunks_of(std::int64_t num_rows) const;
  void add_input_gradient(TensorView dx_ND, const Range& rows, const Chunk& chunk) const;

  ExecutionContext execution_;
  Range columns_;
  ParameterStack& weight_;  // [v, D]
  std::int64_t vocab_size_;
  std::int64_t chunk_rows_;
  std::int64_t unit_rows_;  // what is cut into chunks: a batch, or in exact mode a sample
  std::optional<LeafSums> leaf_sums_;  // exact mode: of the columns
  Tensor logits_;                      // [chunk_rows * v]
  Tensor max_;                         // [chunk_rows]
  Tensor sums_;      // [2 * chunk_rows], in exact mode for each of this rank's sums
  Tensor loss_sum_;  // [1] f64, or the values of an ExactSum
};

}  // namespace redspine
