#include "model/embedding.h"

#include "model/linear.h"

namespace redspine {
namespace {

const ParameterStack& declare_weight(ParameterStore& store, const ModelConfig& config, Range rows) {
  ParameterSpec spec =
      sharded_parameter("embedding.weight", {config.vocab_size, config.hidden_size}, 0, rows);
  spec.initial_std = weight_std();
  return store.declare({spec});
}

const ParameterStack* declare_position(ParameterStore& store, const ModelConfig& config,
                                       int tensor_rank) {
  if (config.position != Position::learned) return nullptr;
  ParameterSpec spec = replicated_parameter(
      "position.weight", {config.max_sequence_length, config.hidden_size}, tensor_rank);
  spec.initial_std = weight_std();
  return &store.declare({spec});
}

// Positions [max length, D] as the bias of a batch seen as [B, T * D].
Shape batch_rows(const TensorView& x_BTD) { return {x_BTD.dim(0), x_BTD.dim(1) * x_BTD.dim(2)}; }
template <class View>
View position_bias(const View& position, const TensorView& x_BTD) {
  return position.slice(0, x_BTD.dim(1)).reshape({x_BTD.dim(1) * x_BTD.dim(2)});
}

}  // namespace

Range local_vocabulary(const Placement& placement, const ModelConfig& config) {
  return partition(config.vocab_size, placement.tensor_axis().size(),
                   placement.tensor_axis().rank());
}

TokenEmbedding::TokenEmbedding(Placement placement, ParameterStore& store,
                               const ModelConfig& config)
    : placement_(placement),
      rows_(local_vocabulary(placement, config)),
      weight_(declare_weight(store, config, rows_)),
      position_(declare_position(store, config, placement.tensor_axis().rank())) {}

void TokenEmbedding::forward(TensorView out_BTD, ConstTensorView tokens_BT,
                             const DropoutKey& dropout) const {
  Device& device = placement_.device;
  ops::run(
      device,
      Embedding{
          .out = out_BTD, .weight = weight_.value, .tokens = tokens_BT, .first_row = rows_.begin});
  placement_.all_reduce_over_tensor(out_BTD, ReduceOp::sum);
  if (position_ != nullptr) {
    ops::run(device, AddBias{.x = out_BTD.reshape(batch_rows(out_BTD)),
                             .bias = position_bias(position_->value, out_BTD)});
  }
  drop(device, out_BTD, dropout);
}

void TokenEmbedding::backward(TensorView dout_BTD, ConstTensorView tokens_BT,
                              const DropoutKey& dropout) const {
  Device& device = placement_.device;
  drop(device, dout_BTD, dropout);
  if (position_ != nullptr) {
    ops::run(device, AddBiasBackward{.dbias = position_bias(position_->gradient, dout_BTD),
                                     .dy = dout_BTD.reshape(batch_rows(dout_BTD))});
  }
  ops::run(device, EmbeddingBackward{.dweight = weight_.gradient,
                                     .dout = dout_BTD,
                                     .tokens = tokens_BT,
                                     .first_row = rows_.begin});
}

}  // namespace redspine
