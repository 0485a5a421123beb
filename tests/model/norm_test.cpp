#include "model/norm.h"

#include <gtest/gtest.h>

#include "tests/model/gradient_check.h"
#include "tests/model/layer_config.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

void expect_norm_gradients(const ModelConfig& config, std::size_t num_parameters) {
  constexpr std::int64_t kRows = 5;
  Bench bench;
  Device& device = *bench.device;
  const Norm norm(bench.execution(), bench.store.begin_bucket(), config, "norm");
  bench.store.allocate(device);
  EXPECT_EQ(bench.store.parameters().size(), num_parameters);
  randomize_parameters(bench.store, device, 0.3F);
  Norm::Saved saved = norm.make_saved(kRows);
  const Shape shape{kRows, config.hidden_size};
  Tensor x(device, DType::f32, shape);
  Tensor dx(device, DType::f32, shape);
  Tensor out(device, DType::f32, shape);
  const std::vector<float> dout =
      random_columns("dout", kRows, config.hidden_size, {0, config.hidden_size});
  std::vector<Variable> variables = parameters_of(bench.store, SharedGradients::apart);
  variables.push_back(replicated_input("x", x, dx));
  randomize(variables.back(), device, 1.0F);
  expect_gradients_of_differences({.device = device,
                                   .variables = variables,
                                   .loss =
                                       [&] {
                                         norm.forward(out, x, saved);
                                         return weighted_sum(device, out, dout);
                                       },
                                   .compute_gradients =
                                       [&] {
                                         norm.forward(out, x, saved);
                                         norm.backward(dx, to_device(device, dout, shape), x,
                                                       saved);
                                       }});
}

TEST(Norm, GradientsOfLayerNormAreThoseOfDifferences) {
  expect_norm_gradients(layer_config(Family::gpt2), 2);
}

TEST(Norm, GradientsOfLayerNormWithoutBiasAreThoseOfDifferences) {
  ModelConfig config = layer_config(Family::gpt2);
  config.bias = false;
  expect_norm_gradients(config, 1);
}

TEST(Norm, GradientsOfRmsNormAreThoseOfDifferences) {
  expect_norm_gradients(layer_config(Family::llama), 1);
}

TEST(Norm, RmsNormHasNoBiasWhateverTheOthersHave) {
  ModelConfig config = layer_config(Family::llama);
  config.bias = true;
  expect_norm_gradients(config, 1);
}

// The gradient of the residual stream passes by the norm; the norm's own is added to it.
TEST(Norm, AddsToTheGradientOfItsInput) {
  const ModelConfig config = layer_config(Family::gpt2);
  Bench bench;
  Device& device = *bench.device;
  const Norm norm(bench.execution(), bench.store.begin_bucket(), config, "norm");
  bench.store.allocate(device);
  randomize_parameters(bench.store, device, 0.3F);
  const Shape shape{3, config.hidden_size};
  Tensor x = to_device(device, random_values(shape.count(), 1), shape);
  const Tensor dout = to_device(device, random_values(shape.count(), 2), shape);
  Tensor out(device, DType::f32, shape);
  Tensor from_zero(device, DType::f32, shape);
  Tensor from_one = to_device(device, std::vector<float>(72, 1.0F), shape);
  Norm::Saved saved = norm.make_saved(3);
  norm.forward(out, x, saved);
  norm.backward(from_zero, dout, x, saved);
  norm.backward(from_one, dout, x, saved);
  const std::vector<float> zero = from_device(device, from_zero);
  const std::vector<float> one = from_device(device, from_one);
  for (std::size_t i = 0; i < zero.size(); ++i) EXPECT_NEAR(one[i], zero[i] + 1.0F, 1e-6);
}

}  // namespace
}  // namespace redspine::testing
