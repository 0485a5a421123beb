#include "model/embedding.h"

#include "model/linear.h"
#include "parallel/mesh/tensor_parallel.h"

namespace redspine {
namespace {

ParameterStack& declare_weight(ParameterStore& store, const ModelConfig& config, Range rows) {
  ParameterSpec spec =
      sharded_parameter("embedding.weight", {config.vocab_size, config.hidden_size}, 0, rows);
  spec.initial_std = weight_std();
  return store.declare({spec});
}

ParameterStack* declare_position(ParameterStore& store, const ModelConfig& config,
                                 int tensor_rank) {
  if (config.position != Position::learned) return nullptr;
  ParameterSpec spec = replicated_parameter(
      "position.weight", {config.max_sequence_length, config.hidden_size}, tensor_rank);
  spec.initial_std = weight_std();
  return &store.declare({spec});
}

}  // namespace

Range local_vocabulary(const ExecutionContext& execution, const ModelConfig& config) {
  return partition(config.vocab_size, execution.tensor_axis().size(),
                   execution.tensor_axis().rank());
}

TokenEmbedding::TokenEmbedding(ExecutionContext execution, ParameterStore& store,
                               const ModelConfig& config)
    : execution_(execution),
      rows_(local_vocabulary(execution, config)),
      weight_(declare_weight(store, config, rows_)),
      position_(declare_position(store, config, execution.tensor_axis().rank())) {}

void TokenEmbedding::forward(TensorView out_BTD, ConstTensorView tokens_BT,
                             const DropoutKey& dropout) const {
  // One rank's summand carries the positions, so that the sum holds them once.
  const bool has_position = execution_.tensor_axis().rank() == 0;
  ops::run(execution_.device,
           Embedding{.out = out_BTD,
                     .weight = weight_.value,
                     .position = value_or_none(has_position ? position_ : nullptr),
                     .tokens = tokens_BT,
                     .first_row = rows_.begin});
  reduce_from_tensor_region(execution_.device, execution_.mesh, out_BTD);
  drop(execution_.device, out_BTD, dropout);
}

void TokenEmbedding::backward(TensorView dout_BTD, ConstTensorView tokens_BT,
                              const DropoutKey& dropout) const {
  drop(execution_.device, dout_BTD, dropout);
  ops::run(execution_.device,
           EmbeddingBackward{.dweight = weight_.gradient_to_add_to(execution_.device),
                             .dposition = gradient_or_none(execution_.device, position_),
                             .dout = dout_BTD,
                             .tokens = tokens_BT,
                             .first_row = rows_.begin});
}

}  // namespace redspine
