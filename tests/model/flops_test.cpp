#include "model/flops.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.h"

namespace redspine {
namespace {

TEST(Flops, OfGpt2SmallAreThoseOfTheHandbook) {
  // A layer: query, key, value and output of 768 x 768, two MLP matrices of 768 x 3072. The head:
  // 768 x 50257. Six for each weight; 12 * 12 layers * 768 * 1024 for the scores.
  const double weights = 12.0 * (4.0 * 589'824.0 + 2.0 * 2'359'296.0) + 38'597'376.0;
  EXPECT_EQ(weights, 123'532'032.0);
  EXPECT_EQ(training_flops_per_token(ModelConfig::preset(Family::gpt2), 1024), 854'438'400.0);
  EXPECT_EQ(6.0 * weights + 113'246'208.0, 854'438'400.0);
}

TEST(Flops, CountTheHeadTiedOrNot) {
  ModelConfig config = ModelConfig::preset(Family::gpt2);
  const double tied = training_flops_per_token(config, 1024);
  config.tie_embeddings = false;
  EXPECT_EQ(training_flops_per_token(config, 1024), tied);
}

TEST(Flops, CountThreeMatricesOfAGatedMlpAndFewerKeysWhereGrouped) {
  ModelConfig config = testing::tiny_model(
      Family::gpt2,
      {.num_layers = 1, .hidden_size = 8, .num_kv_heads = 1, .ffn_size = 10, .vocab_size = 16});
  config.activation = Activation::swiglu;
  // Query and output 8 x 8, key and value 8 x 2; gate, up and down 8 x 10; head 8 x 16.
  EXPECT_EQ(training_flops_per_token(config, 3),
            6.0 * (2 * 64 + 2 * 16 + 3 * 80 + 128) + 12.0 * 8 * 3);
}

}  // namespace
}  // namespace redspine
