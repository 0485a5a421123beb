// How much arithmetic a model takes, for rates and utilisation.
#pragma once

#include "model/config.h"

namespace redspine {

/// Floating-point operations of a training step per token, in the convention of the field
/// (Chowdhery et al., arXiv 2204.02311, appendix B): 6 for each weight of a matrix product (2
/// forward, 4 backward), and 12 * layers * hidden * T for attention scores, not halved for the
/// causal mask.
/// Look-ups (token and position embeddings) count nothing; the head counts, tied or not.
double training_flops_per_token(const ModelConfig& config, std::int64_t sequence_length);

}  // namespace redspine
