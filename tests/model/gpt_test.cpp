#include "model/gpt.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/model_spec.h"
#include "tests/model/gradient_check.h"
#include "tests/model/layer_config.h"
#include "tests/support/random_tensor.h"
#include "tests/support/test_device.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kLength = 10;
constexpr auto kNumTokens = static_cast<double>(kBatch * kLength);
constexpr auto kScale = static_cast<float>(1.0 / kNumTokens);

struct Memory {
  Recompute recompute = Recompute::none;
  bool sequence = false;
};

/// A model over all ranks as one tensor axis, and a batch for it.
class GptCase {
 public:
  explicit GptCase(const ModelConfig& config, std::uint64_t seed = 7, const Memory& memory = {})
      : device(make_test_device()),
        mesh(world(), MeshShape::of(world().size(), world().size()), *device),
        model(config, {kBatch, kLength}, seed,
              {.device = *device,
               .mesh = mesh,
               .recompute = memory.recompute,
               .sequence = memory.sequence}),
        reducer(*device, mesh, model.parameters().buckets(), 1),
        tokens(to_device(*device, ids(config, 1), {kBatch, kLength})),
        targets(to_device(*device, ids(config, 2), {kBatch, kLength})),
        samples(to_device(*device, std::vector<std::int64_t>{11, 4, 6}, {kBatch})) {}

  MicroBatch batch() const {
    return {.tokens_BT = tokens, .targets_BT = targets, .samples_B = samples};
  }
  /// The mean loss with dropout; the gradients of it are added to the parameters'.
  double train() {
    model.forward_backward(batch(), kScale, reducer);
    reducer.finish();
    return model.take_loss_sum().total() / kNumTokens;
  }
  double evaluate() {
    model.evaluate(batch());
    return model.take_loss_sum().total() / kNumTokens;
  }

 private:
  static std::vector<std::int32_t> ids(const ModelConfig& config, unsigned seed) {
    return random_ids(kBatch * kLength, seed, 0, static_cast<std::int32_t>(config.vocab_size - 1));
  }

 public:
  std::unique_ptr<Device> device;
  ProcessMesh mesh;
  Gpt model;
  GradientReducer reducer;
  Tensor tokens;
  Tensor targets;
  Tensor samples;
};

ModelConfig grouped(Family family, std::int64_t num_kv_heads) {
  ModelConfig config = layer_config(family);
  config.num_kv_heads = num_kv_heads;
  return config;
}

// The whole way: from the parameters through all layers to the loss, and back through the reducer.
// A whole model bends more than a layer, so the step is smaller and with it the tolerance larger:
// truncation and rounding are both below 1e-3 of the gradient here.
void expect_gpt_gradients(const ModelConfig& config) {
  GptCase gpt(config);
  ParameterStore& store = gpt.model.parameters();
  randomize_parameters(store, *gpt.device, 0.2F);
  std::vector<Variable> variables = parameters_of(store, SharedGradients::added_up);
  std::erase_if(variables, [&](const Variable& variable) {  // see attention_test.cpp
    return config.position == Position::learned && variable.name.ends_with("key.bias");
  });
  expect_gradients_of_differences({.device = *gpt.device,
                                   .variables = variables,
                                   .loss = [&] { return gpt.train(); },
                                   .compute_gradients =
                                       [&] {
                                         store.zero_gradients();
                                         gpt.train();
                                       },
                                   .tolerance = 3e-3,
                                   .step = 2.5e-3});
}

TEST(Gpt, GradientsOfAGpt2AreThoseOfDifferences) {
  expect_gpt_gradients(layer_config(Family::gpt2));
}

TEST(Gpt, GradientsOfALlamaAreThoseOfDifferences) {
  expect_gpt_gradients(layer_config(Family::llama));
}

TEST(Gpt, GradientsWithSharedKeyValueHeadsAndDropoutAreThoseOfDifferences) {
  ModelConfig config = grouped(Family::llama, 2);
  config.bias = true;
  config.tie_embeddings = true;
  config.dropout = 0.1;
  expect_gpt_gradients(config);
  config = grouped(Family::gpt2, 1);
  config.tie_embeddings = false;
  config.activation = Activation::gelu;
  config.dropout = 0.1;
  expect_gpt_gradients(config);
}

TEST(Gpt, FirstLossIsThatOfGuessing) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      ModelConfig config = layer_config(family);
      config.hidden_size = 96;
      config.vocab_size = 1009;
      GptCase gpt(config, seed);
      const double guessing = std::log(static_cast<double>(config.vocab_size));
      EXPECT_NEAR(gpt.evaluate(), guessing, 0.1);
      EXPECT_NEAR(gpt.train(), guessing, 0.1);
    }
  }
}

// Of two micro-batches, so that a forward pass follows a backward pass.
std::vector<float> gradients_with(const Memory& memory, const ModelConfig& config) {
  GptCase gpt(config, 7, memory);
  randomize_parameters(gpt.model.parameters(), *gpt.device, 0.2F);
  gpt.train();
  gpt.train();
  return from_device(*gpt.device, gpt.model.parameters().gradients());
}

TEST(Gpt, RecomputedActivationsGiveGradientsOfTheSameBits) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    ModelConfig config = grouped(family, 2);
    config.num_layers = 3;
    config.dropout = 0.3;
    const std::vector<float> kept = gradients_with({}, config);
    for (const Recompute recompute : {Recompute::attention, Recompute::block}) {
      EXPECT_EQ(gradients_with({.recompute = recompute}, config) == kept, true)
          << word_of(recompute);
    }
    config.num_layers = 1;  // nothing to compute again
    EXPECT_EQ(gradients_with({.recompute = Recompute::block}, config) == gradients_with({}, config),
              true);
  }
}

// The distance of two vectors, by the length of the second.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0.0;
  double of_difference = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    squares += std::pow(static_cast<double>(b[i]), 2);
    of_difference += std::pow(static_cast<double>(a[i] - b[i]), 2);
  }
  EXPECT_GT(squares, 0.0);
  return std::sqrt(of_difference / squares);
}

TEST(Gpt, SharedRowsGiveTheSameLossAndGradients) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    ModelConfig config = grouped(family, 2);
    config.dropout = 0.3;
    GptCase whole(config);
    GptCase shared(config, 7, {.sequence = true});
    const auto gradients_of = [](GptCase& gpt) {
      randomize_parameters(gpt.model.parameters(), *gpt.device, 0.2F);
      gpt.train();
      return from_device(*gpt.device, gpt.model.parameters().gradients());
    };
    EXPECT_LT(difference(gradients_of(shared), gradients_of(whole)), 1e-5);
    const double loss = whole.evaluate();
    EXPECT_NEAR(shared.evaluate(), loss, 1e-6 * loss);
    const Range columns = whole.model.logits_columns();
    Tensor logits(*whole.device, DType::f32, {1, columns.size()});
    Tensor logits_of_shared(*shared.device, DType::f32, {1, columns.size()});
    whole.model.row_logits(logits, whole.batch(), 17);
    shared.model.row_logits(logits_of_shared, shared.batch(), 17);
    EXPECT_LT(difference(from_device(*shared.device, logits_of_shared),
                         from_device(*whole.device, logits)),
              1e-5);
  }
}

TEST(Gpt, GradientsOfMicroBatchesAddUp) {
  GptCase gpt(grouped(Family::gpt2, 6));
  gpt.train();
  const std::vector<float> once = from_device(*gpt.device, gpt.model.parameters().gradients());
  gpt.train();
  const std::vector<float> twice = from_device(*gpt.device, gpt.model.parameters().gradients());
  std::vector<float> doubled = once;
  for (float& value : doubled) value *= 2.0F;
  EXPECT_LT(difference(twice, doubled), 5e-7);
}

TEST(Gpt, GradientsOfANewStepHoldNothingOfTheLast) {
  for (const bool ties : {false, true}) {
    ModelConfig config = layer_config(Family::gpt2);
    config.tie_embeddings = ties;
    GptCase gpt(config);
    const auto gradients = [&] {
      return from_device(*gpt.device, gpt.model.parameters().gradients());
    };
    gpt.train();
    const std::vector<float> first = gradients();
    for (const Parameter& parameter : gpt.model.parameters().parameters()) {
      const std::vector<float> old(static_cast<std::size_t>(parameter.gradient.count()), NAN);
      gpt.device->upload(parameter.gradient.reshape({parameter.gradient.count()}),
                         host_view(std::span(old)));
    }
    gpt.model.parameters().zero_gradients();
    gpt.train();
    EXPECT_EQ(gradients() == first, true);
  }
}

TEST(Gpt, DropoutChangesTrainingAndLeavesEvaluationAlone) {
  const ModelConfig without = layer_config(Family::gpt2);
  ModelConfig with = without;
  with.dropout = 0.5;
  GptCase plain(without);
  GptCase dropped(with);
  for (GptCase* gpt : {&plain, &dropped}) {
    randomize_parameters(gpt->model.parameters(), *gpt->device, 0.2F);
  }
  EXPECT_EQ(plain.evaluate(), dropped.evaluate());
  EXPECT_EQ(plain.train(), plain.evaluate());
  EXPECT_GT(std::abs(dropped.train() - plain.train()), 0.01);
}

TEST(Gpt, DropoutDependsOnTheSampleNotOnItsRow) {
  ModelConfig config = layer_config(Family::gpt2);
  config.dropout = 0.3;
  GptCase gpt(config);
  randomize_parameters(gpt.model.parameters(), *gpt.device, 0.2F);
  const double loss = gpt.train();

  // The same samples in another order.
  const auto rotated = [&]<class T>(Tensor& tensor, T) {
    std::vector<T> values = from_device<T>(*gpt.device, tensor);
    const std::ptrdiff_t row = std::ssize(values) / kBatch;
    std::rotate(values.begin(), values.begin() + row, values.end());
    gpt.device->upload(tensor.view().reshape({tensor.count()}), host_view(std::span(values)));
  };
  rotated(gpt.tokens, std::int32_t{});
  rotated(gpt.targets, std::int32_t{});
  const double with_old_numbers = gpt.train();
  rotated(gpt.samples, std::int64_t{});
  EXPECT_NEAR(gpt.train() / loss, 1.0, 1e-6);
  EXPECT_GT(std::abs(with_old_numbers / loss - 1.0), 1e-4);
}

TEST(Gpt, EvaluationRepeatsItsBitsAndChangesNothing) {
  GptCase gpt(layer_config(Family::llama));
  const std::vector<float> before = from_device(*gpt.device, gpt.model.parameters().values());
  gpt.train();
  const std::vector<float> gradients = from_device(*gpt.device, gpt.model.parameters().gradients());
  const double first = gpt.evaluate();
  EXPECT_EQ(gpt.evaluate(), first);
  EXPECT_EQ(from_device(*gpt.device, gpt.model.parameters().values()) == before, true);
  EXPECT_EQ(from_device(*gpt.device, gpt.model.parameters().gradients()) == gradients, true);
}

TEST(Gpt, LossIsTheCrossEntropyOfTheLogits) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    GptCase gpt(layer_config(family));
    randomize_parameters(gpt.model.parameters(), *gpt.device, 0.2F);
    const Range columns = gpt.model.logits_columns();
    Tensor logits(*gpt.device, DType::f32, {kBatch * kLength, columns.size()});
    gpt.model.logits(logits, gpt.batch());
    const std::vector<float> mine = from_device(*gpt.device, logits);
    const auto targets = from_device<std::int32_t>(*gpt.device, gpt.targets);
    double expected = 0.0;
    for (std::size_t row = 0; row < targets.size(); ++row) {
      double sums[2] = {0.0, 0.0};  // of exp, and the target's logit
      for (std::int64_t column = 0; column < columns.size(); ++column) {
        const auto logit = static_cast<double>(mine[row * static_cast<std::size_t>(columns.size()) +
                                                    static_cast<std::size_t>(column)]);
        sums[0] += std::exp(logit);
        if (columns.begin + column == targets[row]) sums[1] = logit;
      }
      world().all_reduce(sums, ReduceOp::sum);
      expected += std::log(sums[0]) - sums[1];
    }
    EXPECT_NEAR(gpt.evaluate() / (expected / kNumTokens), 1.0, 1e-6);
  }
}

TEST(Gpt, CountsAreThoseOfTheConfiguration) {
  std::vector<ModelConfig> configs{layer_config(Family::gpt2), layer_config(Family::llama),
                                   grouped(Family::llama, 2), grouped(Family::gpt2, 1)};
  configs.push_back(layer_config(Family::gpt2));
  configs.back().tie_embeddings = false;
  configs.back().bias = false;
  configs.back().activation = Activation::swiglu;
  configs.push_back(grouped(Family::llama, 3));
  configs.back().bias = true;
  configs.back().tie_embeddings = true;
  configs.back().position = Position::learned;
  for (const ModelConfig& config : configs) {
    GptCase gpt(config);
    double owned = 0.0;
    for (const ConstTensorView& gradient : gpt.model.parameters().owned_gradients()) {
      owned += static_cast<double>(gradient.count());
    }
    EXPECT_EQ(world().all_reduce(owned, ReduceOp::sum),
              static_cast<double>(num_parameters(config)));
  }
}

}  // namespace
}  // namespace redspine::testing
