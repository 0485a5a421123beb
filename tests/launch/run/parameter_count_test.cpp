// The counts that a configuration promises are those that a model holds.

#include <gtest/gtest.h>

#include "model/gpt.h"
#include "model/model_spec.h"
#include "tests/support/mpi_main.h"
#include "tests/support/tiny_model.h"

namespace redspine {
namespace {

std::int64_t num_held(const ModelConfig& config, int num_ranks) {
  const std::unique_ptr<Device> device = make_cpu_device(1);
  const ProcessMesh mesh(testing::world(), MeshShape::of(testing::world().size(), num_ranks),
                         *device);
  Gpt model(config, {.num_sequences = 1, .sequence_length = 4}, 1, {*device, mesh});
  std::int64_t count = 0;
  for (const Parameter& parameter : model.parameters().parameters()) {
    count += parameter.value.count();
  }
  return count;
}

ModelConfig tiny(Family family) {
  constexpr std::int64_t kUnevenOverFourRanks = 30;
  return testing::tiny_model(
      family, {.hidden_size = 16, .ffn_size = kUnevenOverFourRanks, .max_sequence_length = 8});
}

void expect_same_count(const ModelConfig& config) {
  const int size = testing::world().size();
  EXPECT_EQ(num_local_parameters(config, {size, testing::world().rank()}), num_held(config, size));
}

TEST(ParameterCount, IsThatOfAGpt2) { expect_same_count(tiny(Family::gpt2)); }

TEST(ParameterCount, IsThatOfALlamaWithSharedKeyValueHeads) {
  ModelConfig config = tiny(Family::llama);
  config.num_kv_heads = 2;
  expect_same_count(config);
}

TEST(ParameterCount, CountsTheOptionsOfEachFamilyInTheOther) {
  ModelConfig gpt2 = tiny(Family::gpt2);
  gpt2.bias = false;
  gpt2.tie_embeddings = false;
  gpt2.activation = Activation::swiglu;
  expect_same_count(gpt2);
  ModelConfig llama = tiny(Family::llama);
  llama.bias = true;
  llama.tie_embeddings = true;
  llama.position = Position::learned;
  llama.num_kv_heads = 1;
  expect_same_count(llama);
}

}  // namespace
}  // namespace redspine
