#include "trainer/checkpoint/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "model/model_spec.h"
#include "tests/support/model_files.h"
#include "tests/support/scratch.h"

namespace redspine::testing {
namespace {

TEST(Summary, ListsTensorsInTheOrderOfTheNetworkAndAddsUpLayers) {
  const Scratch scratch;
  ModelConfig config = small_model(Family::gpt2, 61);
  config.num_layers = 11;  // block 10 must not come before block 2
  write_model(scratch / "model", {.config = config, .type = ElementType::bf16, .num_files = 2});
  const CheckpointSummary summary = summarize(scratch / "model");
  EXPECT_EQ(summary.num_parameters(), num_parameters(config));
  EXPECT_EQ(summary.tensor_bytes, 2 * num_parameters(config));
  EXPECT_EQ(summary.num_optimizer_tensors, 0);
  EXPECT_FALSE(summary.training);
  EXPECT_EQ(summary.tensors.front().name, "transformer.wte.weight");
  EXPECT_EQ(summary.tensors.front().shape, (std::vector<std::int64_t>{61, 32}));
  EXPECT_EQ(summary.tensors.front().type, ElementType::bf16);
  EXPECT_EQ(summary.tensors.back().name, "transformer.ln_f.bias");

  ASSERT_EQ(summary.layers.size(), 14U);
  EXPECT_EQ(summary.layers[2].name, "transformer.h.0");
  EXPECT_EQ(summary.layers[12].name, "transformer.h.10");
  EXPECT_EQ(summary.layers[13].name, "transformer.ln_f");
  double of_tensors = 0.0;
  for (const TensorSummary& tensor : summary.tensors) {
    if (tensor.name.starts_with("transformer.h.10.")) of_tensors += tensor.norm * tensor.norm;
  }
  EXPECT_NEAR(summary.layers[12].norm, std::sqrt(of_tensors), 1e-12);
}

TEST(Summary, TheNormIsThatOfTheElements) {
  const Scratch scratch;
  const TensorBytes bytes =
      write_model(scratch / "model", {.config = small_model(Family::llama, 61)});
  double sum = 0.0;
  const std::string& values = bytes.at("model.norm.weight");
  for (std::size_t at = 0; at < values.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, values.data() + at, sizeof(value));
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  for (const TensorSummary& tensor : summarize(scratch / "model").tensors) {
    if (tensor.name == "model.norm.weight") {
      EXPECT_DOUBLE_EQ(tensor.norm, std::sqrt(sum));
    }
  }
}

TEST(Summary, ShowsTensorsThatDoNotFitTheConfiguration) {
  const Scratch scratch;
  write_model(scratch / "model", {.config = small_model(Family::gpt2, 61)});
  ModelConfig shallower = small_model(Family::gpt2, 61);
  shallower.num_layers = 1;
  write_model(scratch / "other", {.config = shallower});
  scratch.write("model/config.json", read_file(scratch / "other/config.json"));
  EXPECT_EQ(summarize(scratch / "model").tensors.size(), 28U);
}

}  // namespace
}  // namespace redspine::testing
