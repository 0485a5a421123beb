#include "model/flops.h"

namespace redspine {

double training_flops_per_token(const ModelConfig& config, std::int64_t sequence_length) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t attention = 2 * hidden * (config.num_heads + config.num_kv_heads) *
                                 config.head_size();  // query and output; key and value
  const std::int64_t num_mlp_matrices = config.activation == Activation::swiglu ? 3 : 2;
  const std::int64_t mlp = num_mlp_matrices * hidden * config.ffn_size;
  const std::int64_t head = hidden * config.vocab_size;
  const std::int64_t weights = config.num_layers * (attention + mlp) + head;
  return 6.0 * static_cast<double>(weights) + 12.0 * static_cast<double>(config.num_layers) *
                                                  static_cast<double>(hidden) *
                                                  static_cast<double>(sequence_length);
}

}  // namespace redspine
