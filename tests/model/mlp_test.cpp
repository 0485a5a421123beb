#include "model/mlp.h"

#include <gtest/gtest.h>

#include "tests/model/gradient_check.h"
#include "tests/model/layer_config.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

void expect_mlp_gradients(const ModelConfig& config) {
  Bench bench;
  Device& device = *bench.device;
  const Mlp mlp(bench.execution(), bench.store.begin_bucket(), config, "mlp");
  bench.store.allocate(device);
  randomize_parameters(bench.store, device, 0.3F);
  Mlp::Saved saved = mlp.make_saved(2, 3);
  Mlp::Scratch scratch = mlp.make_scratch(2, 3);
  const Shape shape{2, 3, config.hidden_size};
  Tensor x(device, DType::f32, shape);
  Tensor dx(device, DType::f32, shape);
  Tensor out(device, DType::f32, shape);
  const std::vector<float> dout =
      random_columns("dout", 6, config.hidden_size, {0, config.hidden_size});
  std::vector<Variable> variables = parameters_of(bench.store, SharedGradients::apart);
  variables.push_back(replicated_input("x", x, dx));
  randomize(variables.back(), device, 1.0F);
  expect_gradients_of_differences(
      {.device = device,
       .variables = variables,
       .loss =
           [&] {
             mlp.forward(out, x, saved);
             return weighted_sum(device, out, dout);
           },
       .compute_gradients =
           [&] {
             mlp.forward(out, x, saved);
             Tensor on_device = to_device(device, dout, shape);
             mlp.backward({.dx_BTD = dx, .dout_BTD = on_device, .x_BTD = x}, saved, scratch);
           }});
}

TEST(Mlp, GradientsAreThoseOfDifferencesForEveryActivation) {
  for (const auto& [activation, word, theirs] : enum_words<Activation>()) {
    for (const bool bias : {true, false}) {
      SCOPED_TRACE(::testing::Message() << "activation " << word << ", bias " << bias);
      ModelConfig config = layer_config(Family::gpt2);
      config.activation = activation;
      config.bias = bias;
      expect_mlp_gradients(config);
    }
  }
}

TEST(Mlp, GateAndUpAreSplitApart) {
  ModelConfig config = layer_config(Family::llama);
  Bench bench;
  const Mlp mlp(bench.execution(), bench.store.begin_bucket(), config, "mlp");
  const Range share = partition(config.ffn_size, world().size(), world().rank());
  std::vector<std::string> names;
  for (const Parameter& parameter : bench.store.parameters()) {
    names.push_back(parameter.spec.name);
    EXPECT_EQ(parameter.spec.local, share);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"mlp.gate.weight", "mlp.up.weight", "mlp.down.weight"}));
}

}  // namespace
}  // namespace redspine::testing
