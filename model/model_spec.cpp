#include "model/model_spec.h"

#include "model/block.h"
#include "model/embedding.h"
#include "model/lm_head.h"

namespace redspine {
namespace {

std::int64_t num_numbers(const LayerSpec& layer) {
  std::int64_t count = 0;
  for (const ParameterSpec& parameter : layer.parameters) {
    count += parameter.local_shape().count();
  }
  return count;
}

}  // namespace

ModelSpec model_spec(const ModelConfig& config, TensorRank rank) {
  ModelSpec model;
  const TokenEmbedding::Spec embedding = TokenEmbedding::spec(config, rank);
  model.embedding.add(embedding.weight);
  model.embedding.add(embedding.position);
  model.num_blocks = config.num_layers;
  model.block = Block::spec(config, rank);
  const Norm::Spec norm = Norm::spec(config, rank, kFinalNorm);
  model.final_norm.add(norm.weight);
  model.final_norm.add(norm.bias);
  model.head = LmHead::spec(config, rank);
  return model;
}

std::int64_t num_parameters(const ModelConfig& config) { return num_local_parameters(config, {}); }

std::int64_t num_local_parameters(const ModelConfig& config, TensorRank rank) {
  const ModelSpec model = model_spec(config, rank);
  return num_numbers(model.embedding) + model.num_blocks * num_numbers(model.block) +
         num_numbers(model.final_norm) + num_numbers(model.head);
}

}  // namespace redspine
