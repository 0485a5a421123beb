// A GPT: embedding, blocks on a residual stream, final norm, head. Owns its parameters and the
// activations of one micro-batch, all allocated at construction. Every call is collective over the
// tensor axis.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/block_observer.h"
#include "model/embedding.h"
#include "model/lm_head.h"
#include "parallel/mesh/gradient_reducer.h"

namespace redspine {

/// What a model reads at once, on its device. The views outlive the call.
struct MicroBatch {
  ConstTensorView tokens_BT;   // i32, each below the vocabulary size
  ConstTensorView targets_BT;  // i32, the token that follows; -1 = does not count
  ConstTensorView samples_B;   // i64, global sample numbers, which dropout depends on
};

struct MicroBatchShape {
  std::int64_t num_sequences;    // B
  std::int64_t sequence_length;  // T
};

enum class InitialWeights {
  drawn,
  zero,  // for a model whose weights are loaded: drawing takes longer than reading
};

class Gpt {
 public:
  /// Weights are drawn from `seed`, each as a function of its parameter's name and its global
  /// position; so is dropout. `device` and `mesh` outlive the model.
  /// `num_gradient_buffers`: see ParameterStore::allocate.
  Gpt(const ModelConfig& config, MicroBatchShape shape, std::uint64_t seed,
      ExecutionContext execution, InitialWeights initial_weights = InitialWeights::drawn,
      int num_gradient_buffers = 1);
  Gpt(const Gpt&) = delete;
  Gpt& operator=(const Gpt&) = delete;

  ParameterStore& parameters() { return store_; }
  /// Parameters that are still on their way to this rank are waited for where they are read, from
  /// here on. `gather` outlives the model's calls.
  void read_through(ParameterGather& gather) { gather_ = &gather; }

  /// Forward and backward: gradients of scale * (sum of the token losses) are added to the
  /// parameters', and `reducer` is told of each bucket as its backward pass ends. `observers` look
  /// on, in their order.
  void forward_backward(const MicroBatch& batch, float scale, GradientReducer& reducer,
                        std::span<BlockObserver* const> observers = {});
  /// Forward alone, without dropout.
  void evaluate(const MicroBatch& batch);
  /// The sum of the token losses of all calls since the last one, then zero.
  ScalarSum take_loss_sum() { return head_.take_loss_sum(); }

  /// On the device: what a forward pass leaves for the backward pass, and the logits of a chunk.
  std::size_t saved_bytes() const;
  std::size_t logits_bytes() const { return head_.logits_bytes(); }

  /// This rank's columns of the logits, [B*T, v], written; without dropout.
  void logits(TensorView logits_Nv, const MicroBatch& batch);
  /// The same of one row of the B*T alone, [1, v].
  void row_logits(TensorView logits_1v, const MicroBatch& batch, std::int64_t row);
  /// A block like those of this model, with parameters of its own in a bucket of `store`: one that
  /// can stand in for any of them (Block::stand_in_for). The model outlives it, and the two do not
  /// run at the same time.
  Block make_block(ParameterStore& store) const;
  /// What this rank has of the residual stream: [B, T, D], or with sequence parallelism [n, D].
  Shape stream_shape() const {
    return execution_.stream_shape(shape_.num_sequences, shape_.sequence_length,
                                   config_.hidden_size);
  }
  /// The bucket that has the parameters of a block.
  static constexpr std::size_t bucket_of(std::size_t block) { return block + 1; }
  /// The numbers of a sample that dropout draws.
  DropoutSource dropout_of(ConstTensorView samples_B) const;

  /// The vocabulary range of those columns.
  Range logits_columns() const { return local_vocabulary(config_, execution_.tensor_rank()); }

 private:
  bool has_second_gradient() const { return execution_.num_leaves > 0 && config_.tie_embeddings; }
  void allocate_saved();
  Block::Saved saved_of(std::size_t block);
  void await_parameters(std::size_t bucket);
  void embed(const MicroBatch& batch, const DropoutSource& dropout);
  void embed_backward(const MicroBatch& batch, const DropoutSource& dropout);
  ConstTensorView normed_rows() const;
  void forward_to_head(const MicroBatch& batch, const DropoutSource& dropout);
  void recompute(std::size_t block, const DropoutSource& dropout);

  ModelConfig config_;
  std::uint64_t seed_;
  LeafScratch leaf_scratch_;
  std::optional<RowScratch> row_scratch_;
  ExecutionContext execution_;
  MicroBatchShape shape_;
  ParameterStore store_;
  ParameterGather* gather_ = nullptr;  // null: they are always there
  RopeTable rope_;
  TokenEmbedding embedding_;
  std::vector<Block> blocks_;
  Norm final_norm_;
  LmHead head_;

  std::vector<Tensor> residual_nD_;  // [block]: its input; one more for the last output
  // [block], or one for all blocks of what the backward pass computes again.
  std::vector<Block::AttentionSaved> attention_saved_;
  std::vector<Block::MlpSaved> mlp_saved_;
  Norm::Saved final_norm_saved_;
  Tensor dresidual_nD_;
  // Also what the head reads (normed_BTD), and the gradient of that (branch_BTD).
  Block::Scratch scratch_;
};

}  // namespace redspine
