#include "model/block.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/model/gradient_check.h"
#include "tests/model/layer_config.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kLength = 5;

// Dropout is a function of its key, so that the same elements are dropped in every loss and in the
// backward pass: differences see a fixed function.
void expect_block_gradients(const ModelConfig& config) {
  Bench bench;
  Device& device = *bench.device;
  std::optional<RopeTable> rope;
  if (config.position == Position::rope) rope = make_rope_table(device, config, kLength);
  const Block block(bench.execution(), bench.store.begin_bucket(), config, rope ? &*rope : nullptr,
                    1);
  bench.store.allocate(device);
  randomize_parameters(bench.store, device, 0.2F);
  const Block::Saved saved = block.make_saved(kBatch, kLength);
  const Block::Scratch scratch = block.make_scratch(kBatch, kLength);
  const Tensor samples = to_device(device, std::vector<std::int64_t>{8, 3}, {kBatch});
  const DropoutSource dropout{
      .seed = 5, .probability = static_cast<float>(config.dropout), .samples_B = samples};
  const Shape shape{kBatch, kLength, config.hidden_size};
  const Tensor x(device, DType::f32, shape);
  const Tensor dresidual(device, DType::f32, shape);
  const Tensor branch(device, DType::f32, shape);
  const std::vector<float> dout =
      random_columns("dout", kBatch * kLength, config.hidden_size, {0, config.hidden_size});
  std::vector<Variable> variables = parameters_of(bench.store, SharedGradients::apart);
  std::erase_if(variables, [&](const Variable& variable) {  // see attention_test.cpp
    return config.position == Position::learned && variable.name.ends_with("key.bias");
  });
  variables.push_back(replicated_input("x", x, dresidual));
  randomize(variables.back(), device, 1.0F);
  expect_gradients_of_differences({.device = device,
                                   .variables = variables,
                                   .loss =
                                       [&] {
                                         block.forward(branch, {.x_ND = x}, saved, dropout);
                                         return weighted_sum(device, branch, dout) +
                                                weighted_sum(device, Block::residual(saved), dout);
                                       },
                                   .compute_gradients =
                                       [&] {
                                         block.forward(branch, {.x_ND = x}, saved, dropout);
                                         device.copy(dresidual, to_device(device, dout, shape));
                                         block.backward(dresidual, x, saved, scratch, dropout);
                                       }});
}

TEST(Block, GradientsAreThoseOfDifferences) {
  expect_block_gradients(layer_config(Family::gpt2));
  expect_block_gradients(layer_config(Family::llama));
}

TEST(Block, GradientsUnderDropoutAreThoseOfDifferences) {
  ModelConfig config = layer_config(Family::gpt2);
  config.dropout = 0.3;
  expect_block_gradients(config);
  config = layer_config(Family::llama);
  config.num_kv_heads = 2;
  config.dropout = 0.3;
  expect_block_gradients(config);
}

}  // namespace
}  // namespace redspine::testing
