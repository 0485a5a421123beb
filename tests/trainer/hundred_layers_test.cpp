// A hundred layers train: gradients reach the first block as they reach the last, and the loss
// falls.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "launch/config/config_file.h"
#include "tests/support/gradient_norm.h"
#include "tests/support/run_case.h"

namespace redspine::testing {
namespace {

/// configs/hundred-layer-tiny.yaml on tokens of our own.
Config hundred_layers(const RunFiles& files) {
  Config config =
      load_config(REDSPINE_CONFIGS "/hundred-layer-tiny.yaml", {}, world().size()).config;
  config.data.train = {{.path = files.train}};
  config.data.validation = {};
  EXPECT_EQ(config.model.num_layers, 100);
  return config;
}

double gradient_norm_of(RunCase& run, const std::string& prefix) {
  std::vector<ConstTensorView> owned;
  for (const Parameter& parameter : run.trainer.model().parameters().parameters()) {
    if (parameter.spec.name.starts_with(prefix)) owned.push_back(parameter.owned_gradient());
  }
  EXPECT_FALSE(owned.empty());
  return global_gradient_norm(*run.device, owned, run.trainer.mesh().group(Axis::tensor));
}

TEST(HundredLayers, TheFirstBlockGetsAGradientLikeTheLast) {
  const RunFiles files;
  RunCase run(hundred_layers(files));
  const StepReport report = run.trainer.train_step();
  EXPECT_EQ(report.applied, true);
  const double first = gradient_norm_of(run, "blocks.0.");
  const double last = gradient_norm_of(run, "blocks.99.");
  EXPECT_GT(first / last, 0.1);
  EXPECT_LT(first / last, 10.0);
}

TEST(HundredLayers, TheLossFallsOverTwoHundredSteps) {
  const RunFiles files;
  const Config config = hundred_layers(files);
  RunCase run(config);
  std::vector<double> losses;
  for (int step = 0; step < 200; ++step) {
    const StepReport report = run.trainer.train_step();
    EXPECT_EQ(report.applied, true) << "step " << report.step;
    losses.push_back(report.loss);
  }
  const double first = std::accumulate(losses.begin(), losses.begin() + 20, 0.0) / 20;
  const double last = std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20;
  EXPECT_NEAR(losses.front(), std::log(static_cast<double>(config.model.vocab_size)), 0.1);
  EXPECT_LT(last, first - 0.3) << "from " << first << " to " << last;
}

}  // namespace
}  // namespace redspine::testing
