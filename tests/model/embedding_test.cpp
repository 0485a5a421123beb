#include "model/embedding.h"

#include <gtest/gtest.h>

#include "tests/model/gradient_check.h"
#include "tests/model/layer_config.h"
#include "tests/support/expect_close.h"
#include "tests/support/gather.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kLength = 4;

class EmbeddingCase : public Bench {
 public:
  explicit EmbeddingCase(const ModelConfig& config)
      : embedding(execution(), store.begin_bucket(), config),
        shape{kBatch, kLength, config.hidden_size},
        // The first and the last row, and one that occurs twice.
        tokens{0, 60, 20, 20, 7, 33, 41, 0, 59, 1, 2, 3},
        tokens_BT(to_device(*device, tokens, {kBatch, kLength})),
        samples(to_device(*device, std::vector<std::int64_t>{4, 0, 9}, {kBatch})),
        dropout{.key = 3, .probability = static_cast<float>(config.dropout), .samples_B = samples},
        out(*device, DType::f32, shape) {
    store.allocate(*device);
    randomize_parameters(store, *device, 0.3F);
    dout = random_columns("dout", kBatch * kLength, config.hidden_size, {0, config.hidden_size});
  }

  TokenEmbedding embedding;
  Shape shape;
  std::vector<std::int32_t> tokens;
  Tensor tokens_BT;
  Tensor samples;
  DropoutKey dropout;
  Tensor out;
  std::vector<float> dout;
};

void expect_embedding_gradients(const ModelConfig& config) {
  EmbeddingCase layer(config);
  expect_gradients_of_differences(
      {.device = *layer.device,
       .variables = parameters_of(layer.store, SharedGradients::apart),
       .loss =
           [&] {
             layer.embedding.forward(layer.out, layer.tokens_BT, layer.dropout);
             return weighted_sum(*layer.device, layer.out, layer.dout);
           },
       .compute_gradients =
           [&] {
             layer.embedding.backward(to_device(*layer.device, layer.dout, layer.shape),
                                      layer.tokens_BT, layer.dropout);
           }});
}

TEST(TokenEmbedding, GradientsAreThoseOfDifferences) {
  expect_embedding_gradients(layer_config(Family::gpt2));
}

TEST(TokenEmbedding, GradientsWithoutPositionsAreThoseOfDifferences) {
  expect_embedding_gradients(layer_config(Family::llama));
}

TEST(TokenEmbedding, GradientsUnderDropoutAreThoseOfDifferences) {
  ModelConfig config = layer_config(Family::gpt2);
  config.dropout = 0.4;
  expect_embedding_gradients(config);
}

TEST(TokenEmbedding, IsTheRowOfTheTokenPlusThatOfThePosition) {
  EmbeddingCase layer(layer_config(Family::gpt2));
  layer.embedding.forward(layer.out, layer.tokens_BT, layer.dropout);
  const WholeTensors whole =
      gather(layer.store, &Parameter::value, layer.mesh.group(Axis::tensor), *layer.device);
  const auto& rows = whole.at("embedding.weight").values;
  const auto& positions = whole.at("position.weight").values;
  const auto width = static_cast<std::size_t>(layer.shape[2]);
  std::vector<double> expected;
  for (std::size_t n = 0; n < layer.tokens.size(); ++n) {
    for (std::size_t d = 0; d < width; ++d) {
      expected.push_back(
          static_cast<double>(rows[static_cast<std::size_t>(layer.tokens[n]) * width + d]) +
          static_cast<double>(positions[n % kLength * width + d]));
    }
  }
  const std::vector<float> out = from_device(*layer.device, layer.out);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-6);
}

}  // namespace
}  // namespace redspine::testing
