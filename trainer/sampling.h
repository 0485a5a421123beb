// Text from a model, a token at a time. Collective over the tensor axis; every rank comes to the
// same tokens. Does not touch what training depends on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/gpt.h"

namespace redspine {

/// How the next token is drawn.
struct SamplingOptions {
  double temperature = 1.0;  // logits are divided by it; 0 = always the likeliest token
  std::int64_t top_k = 0;    // only the likeliest so many; 0 = all
  std::uint64_t seed = 1234;
};

/// A token of softmax(logits / temperature) among the top k; of equal ones the lowest id. The
/// randomness is a function of seed, position and token alone, so that two layouts, whose logits
/// differ by rounding, differ only where two tokens are as good as tied. Pure.
std::int32_t choose_token(std::span<const float> logits, std::int64_t position,
                          const SamplingOptions& options);

/// What a model says comes next. Computes its whole context anew for each token.
class NextToken {
 public:
  /// Weights are zero until they are loaded into model(). `max_context` is at most the model's
  /// maximum length; a longer context counts with its last so many tokens.
  NextToken(const ModelConfig& config, std::int64_t max_context, ExecutionContext execution);

  Gpt& model() { return model_; }

  /// The logits [V] of the token after `context`, which is not empty; the same bits on every rank.
  std::vector<float> logits(std::span<const std::int32_t> context);

 private:
  std::int64_t max_context_;
  ExecutionContext execution_;
  Gpt model_;
  Tensor tokens_;   // [1, T]
  Tensor samples_;  // [1]
  Tensor logits_1v_;
};

}  // namespace redspine
