// What follows a context, on several ranks that share a model.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/mpi_main.h"
#include "tests/support/tiny_model.h"
#include "trainer/sampling.h"

namespace redspine::testing {
namespace {

ModelConfig config_of(Family family) {
  // The vocabulary is no multiple of any number of ranks here.
  return tiny_model(family, {.num_kv_heads = family == Family::llama ? 2 : 4, .vocab_size = 61});
}

std::vector<std::int32_t> some_tokens(std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(i * 17 % 61));
  return tokens;
}

/// The logits [V] after the last of `tokens`, by a model of just that length on this rank alone.
std::vector<float> expected_logits(const ModelConfig& config, std::span<const std::int32_t> tokens,
                                   ExecutionContext alone, std::uint64_t seed) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  Gpt model(config, {.num_sequences = 1, .sequence_length = length}, seed, alone);
  Tensor device_tokens(alone.device, DType::i32, {1, length});
  Tensor samples(alone.device, DType::i64, {1});
  alone.device.upload(device_tokens.view().reshape({length}), host_view(tokens));
  Tensor logits(alone.device, DType::f32, {length, config.vocab_size});
  model.logits(logits,
               {.tokens_BT = device_tokens, .targets_BT = device_tokens, .samples_B = samples});
  std::vector<float> last(static_cast<std::size_t>(config.vocab_size));
  alone.device.download(host_view(std::span<float>(last)),
                        logits.view().slice(length - 1, 1).reshape({config.vocab_size}));
  return last;
}

TEST(NextToken, LogitsAreThoseOfTheWholeModelForTheLastTokensOfTheContext) {
  const auto device = make_cpu_device(1);
  const ProcessMesh mesh(world(), MeshShape::of(world().size(), world().size()), *device);
  const ProcessGroup self = world().split(world().rank());
  const ProcessMesh self_mesh(self, MeshShape::of(1, 1), *device);
  constexpr std::uint64_t kSeed = 5;
  for (const Family family : {Family::gpt2, Family::llama}) {
    const ModelConfig config = config_of(family);
    NextToken next(config, config.max_sequence_length, {*device, mesh});
    Gpt drawn(config, {.num_sequences = 1, .sequence_length = 1}, kSeed, {*device, mesh});
    device->copy(next.model().parameters().values(), drawn.parameters().values());
    for (const std::int64_t length : {1, 7, 16, 40}) {
      const std::vector<std::int32_t> tokens = some_tokens(length);
      const std::vector<float> actual = next.logits(tokens);
      const auto window =
          std::span(tokens).last(static_cast<std::size_t>(std::min<std::int64_t>(length, 16)));
      const std::vector<float> expected =
          expected_logits(config, window, {*device, self_mesh}, kSeed);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5);

      const std::string bytes(reinterpret_cast<const char*>(actual.data()),
                              actual.size() * sizeof(float));
      for (const std::string& theirs : world().all_gather(bytes)) EXPECT_EQ(theirs, bytes);
    }
  }
}

}  // namespace
}  // namespace redspine::testing
