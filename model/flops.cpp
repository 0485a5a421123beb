#include "model/flops.h"

#include "model/model_spec.h"

namespace redspine {
namespace {

std::int64_t num_weights(const LayerSpec& layer) {
  std::int64_t count = 0;
  for (const LinearSpec& linear : layer.products) {
    count += linear.in_features() * linear.out_features();
  }
  return count;
}

}  // namespace

double training_flops_per_token(const ModelConfig& config, std::int64_t sequence_length) {
  const ModelSpec model = model_spec(config);
  const std::int64_t weights =
      model.num_blocks * num_weights(model.block) + num_weights(model.head);
  return 6.0 * static_cast<double>(weights) + 12.0 * static_cast<double>(config.num_layers) *
                                                  static_cast<double>(config.hidden_size) *
                                                  static_cast<double>(sequence_length);
}

}  // namespace redspine
