#include "model/lm_head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/gradient_check.h"
#include "tests/model/layer_config.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

// The smallest chunk has 64 rows, so that these are two whole chunks and a part of one wherever the
// vocabulary is large; a small vocabulary takes them in one.
constexpr std::int64_t kRows = 150;
constexpr std::int64_t kLargeVocabulary = 70'001;
constexpr float kScale = 0.125F;

class HeadCase : public Bench {
 public:
  HeadCase(const ModelConfig& config, std::int64_t num_rows)
      : embedding(execution(), store.begin_bucket(), config),
        head(execution(), store.begin_bucket(), config, embedding),
        columns(local_vocabulary(config, execution().tensor_rank())),
        shape{num_rows, config.hidden_size},
        targets(random_ids(num_rows, 3, 0, static_cast<std::int32_t>(config.vocab_size - 1))),
        x(*device, DType::f32, shape),
        dx(*device, DType::f32, shape) {
    targets[1] = -1;  // a row that does not count
    targets[0] = static_cast<std::int32_t>(config.vocab_size - 1);
    targets_N = to_device(*device, targets, {num_rows});
    store.allocate(*device);
    head.allocate(num_rows, num_rows);
    randomize_parameters(store, *device, 0.4F);
    randomize(replicated_input("x", x, dx), *device, 1.0F);
  }

  TokenEmbedding embedding;
  LmHead head;
  Range columns;
  Shape shape;
  std::vector<std::int32_t> targets;
  Tensor targets_N;
  Tensor x;
  Tensor dx;
};

void expect_head_gradients(const ModelConfig& config, std::int64_t num_rows) {
  HeadCase layer(config, num_rows);
  Device& device = *layer.device;
  std::vector<Variable> variables = parameters_of(layer.store, SharedGradients::apart);
  const std::string weight = config.tie_embeddings ? "embedding.weight" : "head.weight";
  std::erase_if(variables, [&](const Variable& variable) { return variable.name != weight; });
  variables.push_back(replicated_input("x", layer.x, layer.dx));
  expect_gradients_of_differences(
      {.device = device,
       .variables = variables,
       .loss =
           [&] {
             layer.head.forward(layer.x, layer.targets_N);
             return static_cast<double>(kScale) * layer.head.take_loss_sum().total();
           },
       .compute_gradients =
           [&] {
             layer.head.forward_backward(layer.dx, layer.x, layer.targets_N, kScale);
             layer.head.take_loss_sum().total();
           }});
}

TEST(LmHead, GradientsAreThoseOfDifferences) {
  expect_head_gradients(layer_config(Family::llama), 8);
}

TEST(LmHead, GradientsOfATiedWeightAreThoseOfDifferences) {
  expect_head_gradients(layer_config(Family::gpt2), 8);
}

TEST(LmHead, GradientsOverSeveralChunksAreThoseOfDifferences) {
  ModelConfig config = layer_config(Family::llama);
  config.hidden_size = 6;
  config.vocab_size = kLargeVocabulary;
  expect_head_gradients(config, kRows);
}

struct Results {
  double loss_sum;
  std::vector<float> dx;
  std::vector<float> dweight;
};

// The rows [begin, end) alone.
Results results_of_rows(HeadCase& layer, std::int64_t begin, std::int64_t end) {
  Device& device = *layer.device;
  layer.store.zero_gradients();
  const std::int64_t count = end - begin;
  layer.head.forward_backward(layer.dx.view().slice(begin, count),
                              layer.x.view().slice(begin, count),
                              layer.targets_N.view().slice(begin, count), kScale);
  return {.loss_sum = layer.head.take_loss_sum().total(),
          .dx = from_device(device, layer.dx.view().slice(begin, count)),
          .dweight = from_device(device, layer.store.gradients())};
}

// The same rows in one call, which takes several chunks, and in calls of at most one chunk each.
TEST(LmHead, ChunksChangeNothing) {
  ModelConfig config = layer_config(Family::llama);
  config.hidden_size = 6;
  config.vocab_size = kLargeVocabulary;
  HeadCase layer(config, kRows);
  const Results whole = results_of_rows(layer, 0, kRows);
  double loss_sum = 0.0;
  std::vector<double> dweight(whole.dweight.size(), 0.0);
  for (std::int64_t begin = 0; begin < kRows; begin += 50) {
    const Results part = results_of_rows(layer, begin, begin + 50);
    loss_sum += part.loss_sum;
    for (std::size_t i = 0; i < part.dx.size(); ++i) {
      EXPECT_NEAR(part.dx[i], whole.dx[static_cast<std::size_t>(begin * 6) + i], 1e-6);
    }
    for (std::size_t i = 0; i < dweight.size(); ++i) dweight[i] += part.dweight[i];
  }
  EXPECT_NEAR(whole.loss_sum / loss_sum, 1.0, 1e-7);
  double squares = 0.0;
  double difference = 0.0;
  for (std::size_t i = 0; i < dweight.size(); ++i) {
    squares += dweight[i] * dweight[i];
    difference += std::pow(static_cast<double>(whole.dweight[i]) - dweight[i], 2);
  }
  EXPECT_GT(squares, 0.0);
  EXPECT_LT(std::sqrt(difference / squares), 1e-6);
}

TEST(LmHead, LossIsThatOfTheLogits) {
  const ModelConfig config = layer_config(Family::llama);
  HeadCase layer(config, 8);
  Tensor logits(*layer.device, DType::f32, {8, layer.columns.size()});
  layer.head.logits(logits, layer.x);
  const std::vector<float> mine = from_device(*layer.device, logits);
  double expected = 0.0;
  for (std::size_t row = 0; row < 8; ++row) {
    double sum = 0.0;
    double target = 0.0;
    for (std::int64_t column = 0; column < layer.columns.size(); ++column) {
      const auto logit =
          static_cast<double>(mine[row * static_cast<std::size_t>(layer.columns.size()) +
                                   static_cast<std::size_t>(column)]);
      sum += std::exp(logit);
      if (layer.columns.begin + column == layer.targets[row]) target = logit;
    }
    sum = world().all_reduce(sum, ReduceOp::sum);
    target = world().all_reduce(target, ReduceOp::sum);
    if (layer.targets[row] >= 0) expected += std::log(sum) - target;
  }
  layer.head.forward(layer.x, layer.targets_N);
  EXPECT_NEAR(layer.head.take_loss_sum().total() / expected, 1.0, 1e-6);
}

TEST(LmHead, LossesAddUpUntilTheyAreTaken) {
  HeadCase layer(layer_config(Family::llama), 8);
  layer.head.forward(layer.x, layer.targets_N);
  const double once = layer.head.take_loss_sum().total();
  EXPECT_EQ(layer.head.take_loss_sum().total(), 0.0);
  layer.head.forward(layer.x, layer.targets_N);
  layer.head.forward_backward(layer.dx, layer.x, layer.targets_N, kScale);
  EXPECT_NEAR(layer.head.take_loss_sum().total(), 2.0 * once, 1e-12 * once);
}

TEST(LmHead, RowsWithoutATargetCountNowhere) {
  HeadCase layer(layer_config(Family::llama), 8);
  const Tensor none = to_device(*layer.device, std::vector<std::int32_t>(8, -1), {8});
  layer.head.forward_backward(layer.dx, layer.x, none, kScale);
  EXPECT_EQ(layer.head.take_loss_sum().total(), 0.0);
  for (const float value : from_device(*layer.device, layer.dx)) EXPECT_EQ(value, 0.0F);
  for (const float value : from_device(*layer.device, layer.store.gradients())) {
    EXPECT_EQ(value, 0.0F);
  }
}

}  // namespace
}  // namespace redspine::testing
