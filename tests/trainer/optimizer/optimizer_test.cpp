#include "trainer/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/golden/golden_case.h"
#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using testing::from_device;

/// A matrix, which decays, and a vector of the same elements, which does not.
class Twins {
 public:
  Twins(const OptimizerConfig& config, const std::vector<float>& initial)
      : device_(make_cpu_device(1)), store_(declared(std::ssize(initial))) {
    store_.allocate(*device_);
    for (const Parameter& parameter : store_.parameters()) upload(parameter.value, initial);
    optimizer_.emplace(config, *device_, store_, held_parts(store_));
  }

  void update(const std::vector<float>& gradient, double learning_rate, double scale) {
    for (const Parameter& parameter : store_.parameters()) upload(parameter.gradient, gradient);
    optimizer_->update(learning_rate, scale);
  }
  std::vector<float> matrix() const { return from_device(*device_, store_.parameters()[0].value); }
  std::vector<float> vector() const { return from_device(*device_, store_.parameters()[1].value); }
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  static ParameterStore declared(std::int64_t count) {
    ParameterStore store;
    store.begin_bucket();
    store.declare({replicated_parameter("matrix", {count, 1}, 0)});
    store.declare({replicated_parameter("vector", {count}, 0)});
    return store;
  }
  void upload(const TensorView& to, const std::vector<float>& values) {
    device_->upload(to.reshape({to.count()}), host_view(std::span(values)));
  }

  std::unique_ptr<Device> device_;
  ParameterStore store_;
  std::optional<Optimizer> optimizer_;
};

TEST(Optimizer, AgreesWithTorchAndDecaysMatricesOnly) {
  const auto record = nlohmann::json::parse(testing::read_golden_text("adamw.json"));
  const auto gradients = record.at("gradients").get<std::vector<std::vector<float>>>();
  const auto values_with = [&](double decay) {
    for (const auto& run : record.at("runs")) {
      if (run.at("weight_decay") == decay) {
        return run.at("values").get<std::vector<std::vector<double>>>();
      }
    }
    throw std::runtime_error("no such run");
  };
  int num_compared = 0;
  for (const auto& run : record.at("runs")) {
    const double decay = run.at("weight_decay");
    if (decay == 0.0) continue;
    ++num_compared;
    Twins twins({.beta1 = record.at("beta1"),
                 .beta2 = record.at("beta2"),
                 .epsilon = record.at("epsilon"),
                 .weight_decay = decay},
                record.at("initial").get<std::vector<float>>());
    for (std::size_t step = 0; step < gradients.size(); ++step) {
      twins.update(gradients[step], record.at("learning_rate"), 1.0);
      EXPECT_EQ(twins.optimizer().num_updates(), static_cast<std::int64_t>(step) + 1);
      const double tolerance = 2e-7 * static_cast<double>(step + 1);  // see tables_test.cpp
      for (std::size_t i = 0; i < twins.matrix().size(); ++i) {
        EXPECT_NEAR(twins.matrix()[i], values_with(decay)[step][i], tolerance);
        EXPECT_NEAR(twins.vector()[i], values_with(0.0)[step][i], tolerance);
      }
    }
  }
  EXPECT_GE(num_compared, 1);
}

TEST(Optimizer, ScalesTheGradientBeforeTheMoments) {
  const OptimizerConfig config{.weight_decay = 0.0};
  Twins scaled(config, {1.0F, -2.0F, 0.5F});
  Twins plain(config, {1.0F, -2.0F, 0.5F});
  // A second, different step, since AdamW's first does not depend on the gradient's size.
  for (const float factor : {1.0F, 3.0F}) {
    const std::vector<float> gradient{0.5F * factor, -0.25F, 2.0F};
    std::vector<float> quarter = gradient;
    for (float& value : quarter) value *= 0.25F;
    scaled.update(gradient, 0.1, 0.25);
    plain.update(quarter, 0.1, 1.0);
  }
  EXPECT_EQ(scaled.matrix(), plain.matrix());
}

TEST(Optimizer, TheFirstStepIsTheLearningRateInTheDirectionOfTheGradient) {
  Twins twins({.weight_decay = 0.0}, {1.0F, 1.0F});
  twins.update({3.0F, -0.01F}, 0.125, 1.0);
  EXPECT_NEAR(twins.vector()[0], 0.875, 1e-6);
  EXPECT_NEAR(twins.vector()[1], 1.125, 1e-6);
}

TEST(ClipFactor, BringsALargeNormDownToTheMaximum) {
  EXPECT_NEAR(clip_factor(4.0, 1.0), 0.25, 1e-6);
  EXPECT_EQ(clip_factor(4.0, 1.0), 1.0 / (4.0 + 1e-6));  // as clip_grad_norm_ of torch
  EXPECT_NEAR(clip_factor(1e30, 0.5) * 1e30, 0.5, 1e-9);
}

TEST(ClipFactor, LeavesASmallNormAlone) {
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_factor(0.0, 1.0), 1.0);
}

TEST(ClipFactor, IsOffAtAMaximumOfZero) { EXPECT_EQ(clip_factor(1e9, 0.0), 1.0); }

}  // namespace
}  // namespace redspine
