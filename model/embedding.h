// Token embedding, its vocabulary rows split over the tensor axis, plus learned positions where the
// configuration has them. Collective.
#pragma once

#include "model/config.h"
#include "model/execution_context.h"
#include "model/parameters.h"

namespace redspine {

/// The vocabulary rows that a tensor rank holds. Any vocabulary size, no padding.
Range local_vocabulary(const ModelConfig& config, TensorRank rank);

/// A matrix with a row for each word of the vocabulary, split like it.
ParameterSpec vocabulary_matrix(const ModelConfig& config, TensorRank rank, std::string name);

class TokenEmbedding {
 public:
  struct Spec {
    std::vector<ParameterSpec> weight;
    std::vector<ParameterSpec> position;  // or none
  };
  static Spec spec(const ModelConfig& config, TensorRank rank);

  TokenEmbedding(ExecutionContext execution, ParameterStore& store, const ModelConfig& config);

  /// Declares a second gradient of the weights for the lookup (exact mode): a head that is tied to
  /// them adds to the first. Before the store allocates.
  void separate_gradient(ParameterStore& store);

  /// The weights [v, D], for a head that is tied to them.
  ParameterStack& weight() const { return weight_; }

  /// out_BTD = weight[token] + position, dropped; written. With sequence parallelism this rank's
  /// rows alone hold it, and of dout_BTD these alone are read.
  void forward(TensorView out_BTD, ConstTensorView tokens_BT, const DropoutKey& dropout) const;
  /// Accumulates into the parameters. Consumes dout_BTD.
  void backward(TensorView dout_BTD, ConstTensorView tokens_BT, const DropoutKey& dropout) const;

 private:
  TokenEmbedding(ExecutionContext execution, ParameterStore& store, const Spec& spec);

  ExecutionContext execution_;
  Range rows_;
  ParameterStack& weight_;
  ParameterStack* lookup_;    // whose gradient the lookup's is added to: weight_, or a second one
  ParameterStack* position_;  // [max length, D]; null for rotary positions
};

}  // namespace redspine
