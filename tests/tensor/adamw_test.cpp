#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "tensor/ops.h"
#include "tests/support/expect_close.h"
#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using namespace redspine::testing;

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.95;

struct State {
  Values parameter;
  Values exp_avg;
  Values exp_avg_sq;
};

// One step in the order of torch.optim.AdamW, in f64.
void reference_step(State& s, const Values& gradient, const AdamW& op) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double g = gradient[i] * op.gradient_scale;
    s.parameter[i] *= 1 - op.learning_rate * op.parts[0].weight_decay;
    s.exp_avg[i] = op.beta1 * s.exp_avg[i] + (1 - op.beta1) * g;
    s.exp_avg_sq[i] = op.beta2 * s.exp_avg_sq[i] + (1 - op.beta2) * g * g;
    const double denominator = std::sqrt(s.exp_avg_sq[i]) / std::sqrt(op.correction2) + op.epsilon;
    s.parameter[i] -= op.learning_rate / op.correction1 * s.exp_avg[i] / denominator;
  }
}

TEST(AdamW, FollowsTheReferenceOverManySteps) {
  const auto device = make_cpu_device(2);
  // From 0 the parameters are the sum of the steps, so that an error in those cannot hide.
  for (const auto& [count, spread] :
       std::vector<std::pair<std::int64_t, float>>{{1, 1}, {17, 0}, {40001, 1}, {40001, 0}}) {
    const auto start = random_values(count, 1, spread);
    State expected{widen(start), Values(start.size()), Values(start.size())};
    Tensor parameter = to_device(*device, start, {count});
    Tensor exp_avg(*device, DType::f32, {count});
    Tensor exp_avg_sq(*device, DType::f32, {count});
    for (int step = 1; step <= 10; ++step) {
      const auto gradient = random_values(count, 10U + static_cast<unsigned>(step), 0.01F);
      const Tensor gradient_tensor = to_device(*device, gradient, {count});
      const AdamWPart all{.begin = 0, .count = count, .weight_decay = 0.1};
      const AdamW op{.parameter = parameter,
                     .exp_avg = exp_avg,
                     .exp_avg_sq = exp_avg_sq,
                     .gradient = gradient_tensor,
                     .parts = {&all, 1},
                     .gradient_scale = 0.3,
                     .learning_rate = 1e-2 / step,
                     .beta1 = kBeta1,
                     .beta2 = kBeta2,
                     .epsilon = 1e-8,
                     .correction1 = 1 - std::pow(kBeta1, step),
                     .correction2 = 1 - std::pow(kBeta2, step)};
      ops::run(*device, op);
      reference_step(expected, widen(gradient), op);
    }
    expect_close(from_device(*device, parameter), expected.parameter, 1e-6);
    expect_close(from_device(*device, exp_avg), expected.exp_avg, 1e-6);
    expect_close(from_device(*device, exp_avg_sq), expected.exp_avg_sq, 1e-6);
  }
}

// The first step with a gradient of zeros.
struct StepWithoutGradient {
  Tensor parameter;
  Tensor exp_avg;

  void run(Device& device, std::span<const AdamWPart> parts) {
    const Tensor zeros(device, DType::f32, parameter.shape());
    Tensor exp_avg_sq(device, DType::f32, parameter.shape());
    ops::run(device, AdamW{.parameter = parameter,
                           .exp_avg = exp_avg,
                           .exp_avg_sq = exp_avg_sq,
                           .gradient = zeros,
                           .parts = parts,
                           .gradient_scale = 1,
                           .learning_rate = 0.5,
                           .beta1 = kBeta1,
                           .beta2 = kBeta2,
                           .epsilon = 1e-8,
                           .correction1 = 1 - kBeta1,
                           .correction2 = 1 - kBeta2});
  }
};

TEST(AdamW, GivesEveryPartItsDecayAndLeavesTheRestAlone) {
  const auto device = make_cpu_device(1);
  StepWithoutGradient step{.parameter = to_device<float>(*device, {1, 2, 3, 4, 5}, {5}),
                           .exp_avg = to_device<float>(*device, {0, 0, 1, 0, 0}, {5})};
  step.run(*device, std::vector<AdamWPart>{{.begin = 0, .count = 2, .weight_decay = 1},
                                           {.begin = 3, .count = 0, .weight_decay = 1},
                                           {.begin = 3, .count = 1, .weight_decay = 0},
                                           {.begin = 4, .count = 1, .weight_decay = 0.5}});
  EXPECT_EQ(from_device(*device, step.parameter), (std::vector<float>{0.5, 1, 3, 4, 3.75}));
  EXPECT_EQ(from_device(*device, step.exp_avg), (std::vector<float>{0, 0, 1, 0, 0}));
}

TEST(AdamW, WithoutAGradientOnlyDecays) {
  const auto device = make_cpu_device(1);
  StepWithoutGradient step{.parameter = to_device<float>(*device, {2, -4}, {2}),
                           .exp_avg = Tensor(*device, DType::f32, {2})};
  step.run(*device, std::vector<AdamWPart>{{.begin = 0, .count = 2, .weight_decay = 1}});
  EXPECT_EQ(from_device(*device, step.parameter), (std::vector<float>{1, -2}));
}

}  // namespace
}  // namespace redspine
