// What a whole model declares, known without making it. What is counted of a model is derived from
// here: parameters, FLOPs, the products that `bench` measures, the tensors of a checkpoint. Pure.
#pragma once

#include "model/linear.h"

namespace redspine {

inline constexpr const char* kFinalNorm = "final_norm";

/// On one rank of the tensor axis.
struct ModelSpec {
  LayerSpec embedding;
  std::int64_t num_blocks = 0;
  LayerSpec block;  // of one; all are alike but for Block::prefix(), which is not in the names
  LayerSpec final_norm;
  LayerSpec head;
};
ModelSpec model_spec(const ModelConfig& config, TensorRank rank = {});

/// Trainable numbers, exactly: a tied embedding counts once, padding does not count.
std::int64_t num_parameters(const ModelConfig& config);
/// Those that one rank of the tensor axis holds; what is replicated counts on each.
std::int64_t num_local_parameters(const ModelConfig& config, TensorRank rank);

}  // namespace redspine
