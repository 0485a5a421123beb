#include "model/attention.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/model/gradient_check.h"
#include "tests/model/layer_config.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kLength = 9;

class AttentionCase : public Bench {
 public:
  explicit AttentionCase(const ModelConfig& config)
      : rope(rope_of_layer(*device, config, kLength)),
        attention(execution(), store.begin_bucket(), config, rope ? &*rope : nullptr, "attention"),
        saved(attention.make_saved(kBatch, kLength)),
        scratch(attention.make_scratch(kBatch, kLength)),
        shape{kBatch, kLength, config.hidden_size},
        x(*device, DType::f32, shape),
        dx(*device, DType::f32, shape),
        out(*device, DType::f32, shape),
        samples(to_device(*device, std::vector<std::int64_t>{5, 1}, {kBatch})),
        dropout{
            .key = 17, .probability = static_cast<float>(config.dropout), .samples_B = samples} {
    store.allocate(*device);
    randomize_parameters(store, *device, 0.2F);
    randomize(replicated_input("x", x, dx), *device, 1.0F);
    dout = random_columns("dout", kBatch * kLength, config.hidden_size, {0, config.hidden_size});
  }

  void forward() { attention.forward(out, x, saved, dropout); }
  void backward() {
    Tensor on_device = to_device(*device, dout, shape);
    attention.backward({.dx_BTD = dx, .dout_BTD = on_device, .x_BTD = x}, saved, scratch, dropout);
  }

  std::optional<RopeTable> rope;
  SelfAttention attention;
  SelfAttention::Saved saved;
  SelfAttention::Scratch scratch;
  Shape shape;
  Tensor x;
  Tensor dx;
  Tensor out;
  Tensor samples;
  DropoutKey dropout;
  std::vector<float> dout;
};

void expect_attention_gradients(const ModelConfig& config) {
  AttentionCase layer(config);
  std::vector<Variable> variables = parameters_of(layer.store, SharedGradients::apart);
  // A constant added to all scores of a row does not change its softmax, so that without rotation
  // the true gradient of a key bias is zero: there is nothing to compare.
  std::erase_if(variables, [&](const Variable& variable) {
    return config.position == Position::learned && variable.name == "attention.key.bias";
  });
  variables.push_back(replicated_input("x", layer.x, layer.dx));
  expect_gradients_of_differences({.device = *layer.device,
                                   .variables = variables,
                                   .loss =
                                       [&] {
                                         layer.forward();
                                         return weighted_sum(*layer.device, layer.out, layer.dout);
                                       },
                                   .compute_gradients =
                                       [&] {
                                         layer.forward();
                                         layer.backward();
                                       }});
}

TEST(SelfAttention, GradientsAreThoseOfDifferences) {
  expect_attention_gradients(layer_config(Family::gpt2));
}

TEST(SelfAttention, GradientsWithRotaryPositionsAreThoseOfDifferences) {
  expect_attention_gradients(layer_config(Family::llama));
}

TEST(SelfAttention, GradientsOfSharedKeyValueHeadsAreSummandsThatAddUp) {
  for (const std::int64_t num_kv_heads : {1, 2, 3}) {
    SCOPED_TRACE(num_kv_heads);
    ModelConfig config = layer_config(Family::llama);
    config.num_kv_heads = num_kv_heads;
    config.bias = true;
    expect_attention_gradients(config);
  }
}

TEST(SelfAttention, GradientsUnderDropoutAreThoseOfDifferences) {
  ModelConfig config = layer_config(Family::gpt2);
  config.dropout = 0.3;
  config.num_kv_heads = 2;
  expect_attention_gradients(config);
}

TEST(SelfAttention, AKeyBiasHasNoGradientWithoutRotation) {
  AttentionCase layer(layer_config(Family::gpt2));
  layer.forward();
  layer.backward();
  const auto norm_of = [&](const std::string& name) {
    double sum = 0.0;
    for (const Parameter& parameter : layer.store.parameters()) {
      if (parameter.spec.name != name) continue;
      sum += weighted_sum(*layer.device, parameter.gradient,
                          from_device(*layer.device, parameter.gradient));
    }
    return std::sqrt(world().all_reduce(sum, ReduceOp::sum));
  };
  EXPECT_LT(norm_of("attention.key.bias"), 1e-5 * norm_of("attention.query.bias"));
}

TEST(SelfAttention, APositionSeesNothingAfterIt) {
  AttentionCase layer(layer_config(Family::llama));
  layer.forward();
  const std::vector<float> before = from_device(*layer.device, layer.out);
  std::vector<float> x = from_device(*layer.device, layer.x);
  const auto width = static_cast<std::size_t>(layer.shape[2]);
  for (std::size_t i = 5 * width; i < 6 * width; ++i) x[i] += 1.0F;
  layer.device->upload(layer.x.view().reshape({layer.x.count()}), host_view(std::span(x)));
  layer.forward();
  const std::vector<float> after = from_device(*layer.device, layer.out);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool is_later_in_the_same_sample = i >= 5 * width && i < kLength * width;
    EXPECT_EQ(before[i] != after[i], is_later_in_the_same_sample) << "element " << i;
  }
}

}  // namespace
}  // namespace redspine::testing
