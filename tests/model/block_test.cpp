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

// A block and all that one pass of it needs; x is random.
class BlockCase : public Bench {
 public:
  explicit BlockCase(const ModelConfig& config)
      : rope(rope_of_layer(*device, config, kLength)),
        block(execution(), store.begin_bucket(), config, rope ? &*rope : nullptr, 1),
        attention_saved(block.make_attention_saved(kBatch, kLength)),
        mlp_saved(block.make_mlp_saved(kBatch, kLength)),
        saved{attention_saved, mlp_saved},
        scratch(block.make_scratch(kBatch, kLength)),
        shape{kBatch, kLength, config.hidden_size},
        x(*device, DType::f32, shape),
        dresidual(*device, DType::f32, shape),
        samples(to_device(*device, std::vector<std::int64_t>{8, 3}, {kBatch})),
        dropout{
            .seed = 5, .probability = static_cast<float>(config.dropout), .samples_B = samples} {
    store.allocate(*device);
    randomize_parameters(store, *device, 0.2F);
    randomize(replicated_input("x", x, dresidual), *device, 1.0F);
  }

  Block::Output forward() {
    block.forward_norm1(x, saved.attention);
    return block.forward(x, saved, scratch, dropout);
  }

  std::optional<RopeTable> rope;
  Block block;
  Block::AttentionSaved attention_saved;
  Block::MlpSaved mlp_saved;
  Block::Saved saved;
  Block::Scratch scratch;
  Shape shape;
  Tensor x;
  Tensor dresidual;
  Tensor samples;
  DropoutSource dropout;
};

// Dropout is a function of its key, so that the same elements are dropped in every loss and in the
// backward pass: differences see a fixed function.
void expect_block_gradients(const ModelConfig& config) {
  BlockCase layer(config);
  Device& device = *layer.device;
  const std::vector<float> dout =
      random_columns("dout", kBatch * kLength, config.hidden_size, {0, config.hidden_size});
  std::vector<Variable> variables = parameters_of(layer.store, SharedGradients::apart);
  std::erase_if(variables, [&](const Variable& variable) {  // see attention_test.cpp
    return config.position == Position::learned && variable.name.ends_with("key.bias");
  });
  variables.push_back(replicated_input("x", layer.x, layer.dresidual));
  expect_gradients_of_differences({.device = device,
                                   .variables = variables,
                                   .loss =
                                       [&] {
                                         const Block::Output out = layer.forward();
                                         return weighted_sum(device, out.residual_nD, dout) +
                                                weighted_sum(device, out.branch_nD, dout);
                                       },
                                   .compute_gradients =
                                       [&] {
                                         layer.forward();
                                         device.copy(layer.dresidual,
                                                     to_device(device, dout, layer.shape));
                                         layer.block.backward(layer.dresidual, layer.x, layer.saved,
                                                              layer.scratch, layer.dropout);
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

std::vector<TensorView> views_of(Block::AttentionSaved& saved) {
  return {saved.norm1.mean_N,  saved.norm1.rstd_N,      saved.normed1_nD,
          saved.attention.qkv, saved.attention.context, saved.attention.log_sum_exp_BhT};
}

std::vector<TensorView> views_of(Block::MlpSaved& saved) {
  return {saved.mid_nD,     saved.norm2.mean_N, saved.norm2.rstd_N,
          saved.normed2_nD, saved.mlp.up_BTf,   saved.mlp.hidden_BTf};
}

std::vector<std::vector<float>> values_of(Device& device, const std::vector<TensorView>& views) {
  std::vector<std::vector<float>> values;
  for (const TensorView view : views) {
    if (view.count() > 0) values.push_back(from_device(device, view));
  }
  return values;
}

// All that a forward pass leaves in `saved`, and its input.
std::vector<std::vector<float>> saved_values_of(BlockCase& layer) {
  std::vector<TensorView> views = views_of(layer.attention_saved);
  const std::vector<TensorView> of_mlp = views_of(layer.mlp_saved);
  views.insert(views.end(), of_mlp.begin(), of_mlp.end());
  views.push_back(layer.x);
  return values_of(*layer.device, views);
}

// All that it leaves behind.
std::vector<std::vector<float>> values_of(BlockCase& layer, const Block::Output& out) {
  std::vector<std::vector<float>> values = saved_values_of(layer);
  for (const ConstTensorView view : {out.residual_nD, out.branch_nD}) {
    values.push_back(from_device(*layer.device, view));
  }
  return values;
}

ModelConfig dropping_config(Family family) {
  ModelConfig config = layer_config(family);
  config.dropout = 0.3;
  return config;
}

// A block may run again from its input: nothing is added twice.
TEST(Block, ForwardAgainGivesTheSameBits) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    BlockCase layer(dropping_config(family));
    const auto once = values_of(layer, layer.forward());
    EXPECT_EQ(
        values_of(layer, layer.block.forward(layer.x, layer.saved, layer.scratch, layer.dropout)),
        once);
    EXPECT_EQ(values_of(layer, layer.forward()), once);
  }
}

// What another block has written into the set that all share in the meantime does not matter.
TEST(Block, RecomputesAllThatItHadLeft) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    BlockCase layer(dropping_config(family));
    layer.forward();
    const auto once = saved_values_of(layer);
    for (const TensorView view : views_of(layer.attention_saved)) layer.device->zero(view);
    for (const TensorView view : views_of(layer.mlp_saved)) layer.device->zero(view);
    EXPECT_NE(saved_values_of(layer), once);
    layer.block.recompute(layer.x, layer.saved, layer.scratch, layer.dropout);
    EXPECT_EQ(saved_values_of(layer), once);
  }
}

TEST(Block, RecomputesItsFirstHalfAlone) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    BlockCase layer(dropping_config(family));
    layer.forward();
    const auto once = saved_values_of(layer);
    for (const TensorView view : views_of(layer.attention_saved)) layer.device->zero(view);
    EXPECT_NE(saved_values_of(layer), once);
    layer.block.recompute_attention(layer.x, layer.attention_saved, layer.scratch, layer.dropout);
    EXPECT_EQ(saved_values_of(layer), once);
  }
}

// A model has the norm of a block add up the block's input; the sum alone brings the same back.
TEST(Block, ForwardOfASumIsForwardOfWhatItLeaves) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    BlockCase layer(layer_config(family));
    Device& device = *layer.device;
    const Tensor residual = to_device(device, random_values(layer.shape.count(), 6), layer.shape);
    const Tensor branch = to_device(device, random_values(layer.shape.count(), 7), layer.shape);
    layer.block.add_forward_norm1({.sum_ND = layer.x, .residual_ND = residual, .branch_ND = branch},
                                  layer.attention_saved);
    const auto of_sum =
        values_of(layer, layer.block.forward(layer.x, layer.saved, layer.scratch, layer.dropout));
    EXPECT_EQ(values_of(layer, layer.forward()), of_sum);
  }
}

}  // namespace
}  // namespace redspine::testing
