// A step against what it says it is, put together here from its parts on one rank with the whole
// batch at once: AdamW on the clipped mean gradient of the global batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/gather.h"
#include "tests/support/gradient_norm.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_case.h"
#include "tests/support/test_device.h"
#include "trainer/optimizer/schedule.h"

namespace redspine::testing {
namespace {

struct Step {
  double loss;
  double gradient_norm;
  double learning_rate;
};

/// The same training, by one rank, written out.
class WrittenOut {
 public:
  WrittenOut(const Config& run_config, const ProcessGroup& alone)
      : config(run_config),
        device(make_test_device()),
        mesh(alone, MeshShape::of(1, 1), *device),
        shape{config.batch.global_batch_size, config.batch.sequence_length},
        data(config.data, {.sequence_length = shape.sequence_length,
                           .vocab_size = config.model.vocab_size,
                           .global_batch_size = shape.num_sequences,
                           .seed = config.run.seed}),
        prefetcher(data, {.global_batch_size = shape.num_sequences}),
        feed(*device, shape),
        model(config.model, shape, config.run.seed, {*device, mesh}),
        reducer(*device, mesh, model.parameters().buckets(), 1),
        optimizer(config.optimizer, *device, model.parameters(), held_parts(model.parameters())) {}

  Step train_step() {
    ++num_steps;
    const auto num_tokens = static_cast<double>(shape.num_sequences * shape.sequence_length);
    model.parameters().zero_gradients();
    model.forward_backward(feed.training(prefetcher.next(), 0),
                           static_cast<float>(1.0 / num_tokens), reducer);
    reducer.finish();
    const double norm = global_gradient_norm(*device, model.parameters().owned_gradients(),
                                             mesh.group(Axis::tensor));
    const double rate =
        config.optimizer.learning_rate * schedule_factor(config.schedule, num_steps);
    optimizer.update(rate, std::min(1.0, config.optimizer.max_gradient_norm / (norm + 1e-6)));
    return {model.take_loss_sum().total() / num_tokens, norm, rate};
  }

  Config config;
  std::unique_ptr<Device> device;
  ProcessMesh mesh;
  MicroBatchShape shape;
  TrainingData data;
  Prefetcher prefetcher;
  BatchFeed feed;
  Gpt model;
  GradientReducer reducer;
  Optimizer optimizer;
  std::int64_t num_steps = 0;
};

TEST(TrainStep, IsAdamWOnTheClippedMeanGradientOfTheGlobalBatch) {
  const RunFiles files;
  for (const Family family : {Family::gpt2, Family::llama}) {
    Config config = run_config(files, family);
    config.optimizer.max_gradient_norm = 0.3;
    const ProcessGroup alone = world().split(world().rank());
    WrittenOut expected(config, alone);
    RunCase run(config);
    for (int number = 0; number < 4; ++number) {
      const Step step = expected.train_step();
      EXPECT_GT(step.gradient_norm, 0.3) << "nothing is clipped";
      const StepReport report = run.trainer.train_step();
      EXPECT_NEAR(report.loss / step.loss, 1.0, 1e-5);
      EXPECT_NEAR(report.gradient_norm / step.gradient_norm, 1.0, 1e-5);
      EXPECT_EQ(report.learning_rate, step.learning_rate);
    }
    const WholeTensors whole = gather(run.trainer.model().parameters(), &Parameter::value,
                                      run.trainer.mesh().group(Axis::tensor), *run.device);
    for (const Parameter& parameter : expected.model.parameters().parameters()) {
      // See layouts_test.cpp: AdamW makes steps of the rounding noise in a key bias's gradient.
      if (parameter.spec.name.ends_with("key.bias")) continue;
      const std::vector<float> values = from_device(*expected.device, parameter.value);
      const std::vector<float>& actual = whole.at(parameter.spec.name).values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(actual[i], values[i], 1e-5) << parameter.spec.name;
      }
    }
  }
}

}  // namespace
}  // namespace redspine::testing
