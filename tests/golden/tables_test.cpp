// Small references without a model: AdamW against torch.optim.AdamW, and rotary frequencies and
// tables against the published formulas (make_golden.py, rope_reference.py).
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/rope.h"
#include "tensor/ops.h"
#include "tensor/tensor.h"
#include "tests/golden/golden_case.h"

namespace redspine::testing {
namespace {

using nlohmann::json;

std::vector<float> download(Device& device, ConstTensorView view) {
  std::vector<float> values(static_cast<std::size_t>(view.count()));
  device.download(host_view(std::span(values)), view.reshape({view.count()}));
  return values;
}

Tensor upload(Device& device, const std::vector<float>& values) {
  Tensor tensor(device, DType::f32, {static_cast<std::int64_t>(values.size())});
  device.upload(tensor, host_view(std::span(values)));
  return tensor;
}

TEST(AdamWReference, EveryElementOfEveryStepAgreesWithTorch) {
  const json record = json::parse(read_golden_text("adamw.json"));
  const auto initial = record.at("initial").get<std::vector<float>>();
  const auto gradients = record.at("gradients").get<std::vector<std::vector<float>>>();
  const double beta1 = record.at("beta1");
  const double beta2 = record.at("beta2");
  const auto device = make_cpu_device(1);
  for (const json& run : record.at("runs")) {
    const auto expected = run.at("values").get<std::vector<std::vector<double>>>();
    Tensor parameter = upload(*device, initial);
    Tensor exp_avg(*device, DType::f32, parameter.shape());
    Tensor exp_avg_sq(*device, DType::f32, parameter.shape());
    const AdamWPart all{
        .begin = 0, .count = parameter.count(), .weight_decay = run.at("weight_decay")};
    for (std::size_t step = 0; step < gradients.size(); ++step) {
      const Tensor gradient = upload(*device, gradients[step]);
      const auto t = static_cast<double>(step + 1);
      ops::run(*device, AdamW{.parameter = parameter,
                              .exp_avg = exp_avg,
                              .exp_avg_sq = exp_avg_sq,
                              .gradient = gradient,
                              .parts = {&all, 1},
                              .gradient_scale = 1.0,
                              .learning_rate = record.at("learning_rate"),
                              .beta1 = beta1,
                              .beta2 = beta2,
                              .epsilon = record.at("epsilon"),
                              .correction1 = 1.0 - std::pow(beta1, t),
                              .correction2 = 1.0 - std::pow(beta2, t)});
      const std::vector<float> values = download(*device, parameter);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // Three roundings to float per step, each of at most 6e-8 of a value of about 1.
        EXPECT_NEAR(values[i], expected[step][i], 2e-7 * t)
            << "element " << i << ", step " << step + 1 << ", decay " << run.at("weight_decay");
      }
    }
  }
}

TEST(RopeReference, FrequenciesOfEveryScalingAgreeWithThePublishedFormulas) {
  for (const json& table : json::parse(read_golden_text("rope.json"))) {
    const RopeConfig config = parse_rope(table.at("rope").dump());
    const RopeFrequencies rope = rope_frequencies(config, table.at("head_size"));
    const auto expected = table.at("inverse_frequencies").get<std::vector<double>>();
    ASSERT_EQ(rope.frequencies.size(), expected.size());
    for (std::size_t pair = 0; pair < expected.size(); ++pair) {
      EXPECT_NEAR(rope.frequencies[pair] / expected[pair], 1.0, 1e-12)
          << table.at("rope") << " pair " << pair;
    }
    EXPECT_NEAR(rope.amplitude, table.at("attention_factor").get<double>(), 1e-12)
        << table.at("rope");
  }
}

TEST(RopeReference, TablesStayExactAtLargePositions) {
  const auto device = make_cpu_device(1);
  for (const json& table : json::parse(read_golden_text("rope.json"))) {
    ModelConfig model = ModelConfig::preset(Family::llama);
    model.hidden_size = table.at("head_size");
    model.num_heads = 1;
    model.rope = parse_rope(table.at("rope").dump());
    const auto positions = table.at("positions").get<std::vector<std::size_t>>();
    const auto length = static_cast<std::int64_t>(positions.back()) + 1;
    const RopeTable rope = make_rope_table(*device, model, length);
    const std::vector<float> cosines = download(*device, rope.cos);
    const std::vector<float> sines = download(*device, rope.sin);

    const auto num_pairs = static_cast<std::size_t>(model.head_size() / 2);
    for (std::size_t p = 0; p < positions.size(); ++p) {
      for (std::size_t pair = 0; pair < num_pairs; ++pair) {
        const std::size_t element = positions[p] * num_pairs + pair;
        const auto where = ::testing::Message()
                           << table.at("rope") << " position " << positions[p] << " pair " << pair;
        EXPECT_NEAR(cosines[element], table.at("cos")[p][pair].get<double>(), 2e-7) << where;
        EXPECT_NEAR(sines[element], table.at("sin")[p][pair].get<double>(), 2e-7) << where;
      }
    }
  }
}

}  // namespace
}  // namespace redspine::testing
