#include "model/gpt.h"

#include <algorithm>

#include "model/initialize.h"
#include "model/model_spec.h"
#include "parallel/mesh/tensor_parallel.h"

namespace redspine {
namespace {

RopeTable rope_table(const ModelConfig& config, MicroBatchShape shape, Device& device) {
  switch (config.position) {
    case Position::learned:
      return {};
    case Position::rope:
      return make_rope_table(device, config, shape.sequence_length);
  }
  __builtin_unreachable();
}

const RopeTable* used(const RopeTable& rope) { return rope.cos.count() > 0 ? &rope : nullptr; }

ExecutionContext with_scratch(ExecutionContext execution, LeafScratch& leaves, RowScratch* rows) {
  execution.leaf_scratch = &leaves;
  execution.rows = rows;
  return execution;
}

// Where one rank is all of the tensor axis, it has all rows.
std::optional<RowScratch> row_scratch(const ExecutionContext& execution, MicroBatchShape shape,
                                      std::int64_t hidden_size) {
  const TensorRank rank = execution.tensor_rank();
  if (!execution.sequence || rank.num_ranks == 1) return std::nullopt;
  RowScratch scratch{.shares = {shape.num_sequences, shape.sequence_length, rank},
                     .block_sums = {}};
  if (rank.is_exact()) {
    const std::int64_t num_blocks = std::ssize(scratch.shares.blocks());
    scratch.block_sums = Tensor(execution.device, DType::f32, {num_blocks, 2, hidden_size});
  }
  return scratch;
}

std::vector<Block> make_blocks(ExecutionContext execution, ParameterStore& store,
                               const ModelConfig& config, const RopeTable& rope) {
  std::vector<Block> blocks;
  blocks.reserve(static_cast<std::size_t>(config.num_layers));
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    blocks.emplace_back(execution, store.begin_bucket(), config, used(rope), layer);
  }
  return blocks;
}

}  // namespace

Gpt::Gpt(const ModelConfig& config, MicroBatchShape shape, std::uint64_t seed,
         ExecutionContext execution, InitialWeights initial_weights, int num_gradient_buffers)
    : config_(config),
      seed_(seed),
      row_scratch_(row_scratch(execution, shape, config.hidden_size)),
      execution_(with_scratch(execution, leaf_scratch_, row_scratch_ ? &*row_scratch_ : nullptr)),
      shape_(shape),
      rope_(rope_table(config, shape, execution.device)),
      embedding_(execution_, store_.begin_bucket(), config),
      blocks_(make_blocks(execution_, store_, config, rope_)),
      final_norm_(execution_, store_.begin_bucket(), config, kFinalNorm),
      head_(execution_, store_, config, embedding_) {
  Device& device = execution.device;
  const DType dtype = execution.dtype;
  if (has_second_gradient()) embedding_.separate_gradient(store_);
  store_.allocate(device, dtype, num_gradient_buffers);
  switch (execution.optimizer) {
    case OptimizerPlacement::replicated:
      break;
    case OptimizerPlacement::sharded: {
      const ProcessGroup& data_axis = execution.mesh.group(Axis::data);
      store_.share_updates(data_axis.size(), data_axis.rank());
      break;
    }
  }
  if (initial_weights == InitialWeights::drawn) initialize_parameters(store_, seed, device);

  const auto [batch, length] = shape;
  const Shape stream = stream_shape();
  head_.allocate(batch * length, length);
  if (execution.num_leaves > 0) {
    leaf_scratch_.allocate(device, execution.tensor_rank(), batch * length * config.hidden_size);
  }
  for (std::size_t l = 0; l <= blocks_.size(); ++l) {
    residual_nD_.emplace_back(device, dtype, stream);
  }
  allocate_saved();
  final_norm_saved_ = final_norm_.make_saved(stream.count() / config.hidden_size);
  dresidual_nD_ = Tensor(device, dtype, stream);
  scratch_ = blocks_.front().make_scratch(batch, length);
}

void Gpt::allocate_saved() {
  const auto [batch, length] = shape_;
  const bool shares_attention = execution_.recompute != Recompute::none;
  const bool shares_mlp = execution_.recompute == Recompute::block;
  for (const Block& block : blocks_) {
    if (!shares_attention || attention_saved_.empty()) {
      attention_saved_.push_back(block.make_attention_saved(batch, length));
    }
    if (!shares_mlp || mlp_saved_.empty()) {
      mlp_saved_.push_back(block.make_mlp_saved(batch, length));
    }
  }
}

Block::Saved Gpt::saved_of(std::size_t block) {
  return {.attention = attention_saved_[std::min(block, attention_saved_.size() - 1)],
          .mlp = mlp_saved_[std::min(block, mlp_saved_.size() - 1)]};
}

std::size_t Gpt::saved_bytes() const {
  std::size_t bytes = final_norm_saved_.bytes();
  for (const Tensor& residual : residual_nD_) bytes += residual.view().bytes();
  for (const Block::AttentionSaved& saved : attention_saved_) bytes += saved.bytes();
  for (const Block::MlpSaved& saved : mlp_saved_) bytes += saved.bytes();
  return bytes;
}

Block Gpt::make_block(ParameterStore& store) const {
  return {execution_, store.begin_bucket(), config_, used(rope_), 0};
}

DropoutSource Gpt::dropout_of(ConstTensorView samples_B) const {
  return {
      .seed = seed_, .probability = static_cast<float>(config_.dropout), .samples_B = samples_B};
}

// Buckets: the embedding, each block, and the final norm with the head.
void Gpt::await_parameters(std::size_t bucket) {
  if (gather_ != nullptr) gather_->await(bucket);
}

void Gpt::forward_to_head(const MicroBatch& batch, const DropoutSource& dropout) {
  await_parameters(0);
  embed(batch, dropout);
  await_parameters(1);
  blocks_.front().forward_norm1(residual_nD_.front(), saved_of(0).attention);
  for (std::size_t l = 0; l < blocks_.size(); ++l) {
    const Block::Output out = blocks_[l].forward(residual_nD_[l], saved_of(l), scratch_, dropout);
    const Norm::Sum next{
        .sum_ND = residual_nD_[l + 1], .residual_ND = out.residual_nD, .branch_ND = out.branch_nD};
    await_parameters(l + 2);
    if (l + 1 < blocks_.size()) {
      blocks_[l + 1].add_forward_norm1(next, saved_of(l + 1).attention);
    } else {
      final_norm_.add_forward(execution_.own_rows(scratch_.normed_BTD), next, final_norm_saved_);
    }
  }
  gather_to_tensor_region(execution_.device, execution_.mesh, scratch_.normed_BTD,
                          execution_.row_shares());
}

void Gpt::embed(const MicroBatch& batch, const DropoutSource& dropout) {
  const TensorView stream_nD = residual_nD_.front();
  const TensorView all_BTD = row_scratch_ ? scratch_.branch_BTD.view() : stream_nD;
  embedding_.forward(all_BTD, batch.tokens_BT, dropout.at(DropoutSite::embedding, 0));
  if (row_scratch_) execution_.device.copy(stream_nD, execution_.own_rows(all_BTD));
}

void Gpt::embed_backward(const MicroBatch& batch, const DropoutSource& dropout) {
  const TensorView all_BTD = row_scratch_ ? scratch_.branch_BTD.view() : dresidual_nD_.view();
  if (row_scratch_) execution_.device.copy(execution_.own_rows(all_BTD), dresidual_nD_);
  embedding_.backward(all_BTD, batch.tokens_BT, dropout.at(DropoutSite::embedding, 0));
}

// What all blocks share holds the activations of the last one when the backward pass begins.
void Gpt::recompute(std::size_t block, const DropoutSource& dropout) {
  if (block + 1 == blocks_.size()) return;
  switch (execution_.recompute) {
    case Recompute::none:
      return;
    case Recompute::attention:
      return blocks_[block].recompute_attention(residual_nD_[block], saved_of(block).attention,
                                                scratch_, dropout);
    case Recompute::block:
      return blocks_[block].recompute(residual_nD_[block], saved_of(block), scratch_, dropout);
  }
}

// What the head reads.
ConstTensorView Gpt::normed_rows() const {
  const ConstTensorView normed = scratch_.normed_BTD;
  return normed.reshape({normed.rows(), normed.cols()});
}

void Gpt::forward_backward(const MicroBatch& batch, float scale, GradientReducer& reducer,
                           std::span<BlockObserver* const> observers) {
  const DropoutSource dropout = dropout_of(batch.samples_B);
  const Shape rows{shape_.num_sequences * shape_.sequence_length, config_.hidden_size};
  forward_to_head(batch, dropout);
  const TensorView dnormed_BTD = scratch_.branch_BTD;
  head_.forward_backward(dnormed_BTD.reshape(rows), normed_rows(),
                         batch.targets_BT.reshape({rows[0]}), scale);

  execution_.device.zero(dresidual_nD_);
  final_norm_.backward(dresidual_nD_, execution_.own_rows(dnormed_BTD), residual_nD_.back(),
                       final_norm_saved_);
  reducer.ready(blocks_.size() + 1);
  for (std::size_t l = blocks_.size(); l-- > 0;) {
    recompute(l, dropout);
    const BlockPass pass{.block = l,
                         .x_nD = residual_nD_[l],
                         .out_nD = residual_nD_[l + 1],
                         .dresidual_nD = dresidual_nD_,
                         .saved = saved_of(l)};
    for (BlockObserver* observer : observers) observer->before_backward(pass);
    blocks_[l].backward(dresidual_nD_, residual_nD_[l], saved_of(l), scratch_, dropout);
    for (BlockObserver* observer : observers) observer->after_backward(pass);
    reducer.ready(bucket_of(l));
  }
  embed_backward(batch, dropout);
  reducer.ready(0);
  if (has_second_gradient()) reducer.ready(blocks_.size() + 2);
}

void Gpt::evaluate(const MicroBatch& batch) {
  forward_to_head(batch, {});
  const ConstTensorView x_ND = normed_rows();
  head_.forward(x_ND, batch.targets_BT.reshape({x_ND.dim(0)}));
}

void Gpt::logits(TensorView logits_Nv, const MicroBatch& batch) {
  forward_to_head(batch, {});
  head_.logits(logits_Nv, normed_rows());
}

void Gpt::row_logits(TensorView logits_1v, const MicroBatch& batch, std::int64_t row) {
  forward_to_head(batch, {});
  head_.logits(logits_1v, normed_rows().slice(row, 1));
}

}  // namespace redspine
