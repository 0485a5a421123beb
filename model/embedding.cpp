#include "model/embedding.h"

#include "model/linear.h"
#include "parallel/mesh/tensor_parallel.h"

namespace redspine {

Range local_vocabulary(const ModelConfig& config, TensorRank rank) {
  return rank.share(config.vocab_size);
}

ParameterSpec vocabulary_matrix(const ModelConfig& config, TensorRank rank, std::string name) {
  ParameterSpec spec = sharded_parameter(std::move(name), {config.vocab_size, config.hidden_size},
                                         0, local_vocabulary(config, rank));
  spec.initial_std = weight_std();
  return spec;
}

TokenEmbedding::Spec TokenEmbedding::spec(const ModelConfig& config, TensorRank rank) {
  Spec spec{.weight = {vocabulary_matrix(config, rank, "embedding.weight")}, .position = {}};
  switch (config.position) {
    case Position::learned:
      spec.position = {replicated_parameter(
          "position.weight", {config.max_sequence_length, config.hidden_size}, rank.rank)};
      spec.position.front().initial_std = weight_std();
      break;
    case Position::rope:
      break;
  }
  return spec;
}

TokenEmbedding::TokenEmbedding(ExecutionContext execution, ParameterStore& store,
                               const ModelConfig& config)
    : TokenEmbedding(execution, store, spec(config, execution.tensor_rank())) {}

TokenEmbedding::TokenEmbedding(ExecutionContext execution, ParameterStore& store, const Spec& spec)
    : execution_(execution),
      rows_(spec.weight.front().local),
      weight_(store.declare(spec.weight)),
      lookup_(&weight_),
      position_(store.declare_if_any(spec.position)) {}

void TokenEmbedding::separate_gradient(ParameterStore& store) {
  lookup_ = &store.declare_second_gradient(weight_);
}

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
  reduce_from_tensor_region(execution_.device, execution_.mesh, out_BTD, execution_.row_shares());
  drop(execution_, execution_.own_rows(out_BTD), dropout);
}

void TokenEmbedding::backward(TensorView dout_BTD, ConstTensorView tokens_BT,
                              const DropoutKey& dropout) const {
  drop(execution_, execution_.own_rows(dout_BTD), dropout);
  gather_to_tensor_region(execution_.device, execution_.mesh, dout_BTD, execution_.row_shares());
  ops::run(execution_.device,
           EmbeddingBackward{.dweight = lookup_->gradient_to_add_to(execution_.device),
                             .dposition = gradient_or_none(execution_.device, position_),
                             .dout = dout_BTD,
                             .tokens = tokens_BT,
                             .first_row = rows_.begin});
}

}  // namespace redspine
