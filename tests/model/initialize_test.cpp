#include "model/initialize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/gpt.h"
#include "tests/support/gather.h"
#include "tests/support/mpi_main.h"
#include "tests/support/tiny_model.h"

namespace redspine::testing {
namespace {

// Large enough that statistics are sharp, with shares that are uneven everywhere.
ModelConfig config_of(Family family) {
  return tiny_model(family, {.num_layers = 8,
                             .hidden_size = 60,
                             .num_heads = 6,
                             .num_kv_heads = 2,
                             .ffn_size = 241,
                             .vocab_size = 503,
                             .max_sequence_length = 12});
}

/// The weights of a new model over the ranks of `group`, put together.
WholeTensors weights_of(const ModelConfig& config, std::uint64_t seed, const ProcessGroup& group) {
  const auto device = make_cpu_device(1);
  const ProcessMesh mesh(group, MeshShape::of(group.size(), group.size()), *device);
  Gpt model(config, {.num_sequences = 1, .sequence_length = 4}, seed, {*device, mesh});
  return gather(model.parameters(), &Parameter::value, mesh.group(Axis::tensor), *device);
}

WholeTensors weights_of(const ModelConfig& config, std::uint64_t seed) {
  return weights_of(config, seed, world());
}

bool adds_to_the_residual(const std::string& name) {
  return name.ends_with("attention.output.weight") || name.ends_with("mlp.down.weight");
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0.0;
  double aa = 0.0;
  double bb = 0.0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    ab += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return ab / std::sqrt(aa * bb);
}

// All bounds are five standard deviations of the statistic: the seed is fixed, so a test passes
// always or never, and a right implementation passes at nearly every seed.
constexpr double kSigmas = 5.0;

TEST(Initialization, MatricesAreNormalWithTheSpreadOfTheirPlace) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    const ModelConfig config = config_of(family);
    int num_matrices = 0;
    for (const auto& [name, tensor] : weights_of(config, 1)) {
      if (tensor.shape.rank() != 2) continue;
      ++num_matrices;
      const auto count = static_cast<double>(tensor.values.size());
      double sum = 0.0;
      double squares = 0.0;
      double fourth = 0.0;
      for (const float value : tensor.values) {
        const double square = static_cast<double>(value) * static_cast<double>(value);
        sum += static_cast<double>(value);
        squares += square;
        fourth += square * square;
      }
      const double expected = adds_to_the_residual(name) ? 0.02 / std::sqrt(2.0 * 8.0) : 0.02;
      EXPECT_NEAR(sum / count / expected, 0.0, kSigmas / std::sqrt(count)) << name;
      EXPECT_NEAR(std::sqrt(squares / count) / expected, 1.0, kSigmas / std::sqrt(2.0 * count))
          << name;
      const double kurtosis = fourth / count / std::pow(squares / count, 2);
      EXPECT_NEAR(kurtosis, 3.0, kSigmas * std::sqrt(24.0 / count)) << name;
    }
    EXPECT_GT(num_matrices, 8 * 6);
  }
}

TEST(Initialization, GainsAreOneAndBiasesZero) {
  for (const auto& [name, tensor] : weights_of(config_of(Family::gpt2), 1)) {
    if (tensor.shape.rank() != 1) continue;
    const float expected = name.ends_with(".bias") ? 0.0F : 1.0F;
    for (const float value : tensor.values) EXPECT_EQ(value, expected) << name;
  }
}

TEST(Initialization, NeighboursAreNotCorrelated) {
  for (const auto& [name, tensor] : weights_of(config_of(Family::llama), 1)) {
    if (tensor.shape.rank() != 2) continue;
    const std::vector<float>& values = tensor.values;
    const auto cols = static_cast<std::ptrdiff_t>(tensor.shape[1]);
    // Along a row, down a column, and between the four numbers of one Philox call.
    for (const std::ptrdiff_t lag :
         {std::ptrdiff_t{1}, std::ptrdiff_t{2}, std::ptrdiff_t{3}, std::ptrdiff_t{4}, cols}) {
      const std::vector<float> shifted(values.begin() + lag, values.end());
      EXPECT_NEAR(correlation(values, shifted), 0.0,
                  kSigmas / std::sqrt(static_cast<double>(shifted.size())))
          << name << ", lag " << lag;
    }
  }
}

TEST(Initialization, ParametersAndSeedsAreNotCorrelated) {
  const WholeTensors first = weights_of(config_of(Family::llama), 1);
  const WholeTensors second = weights_of(config_of(Family::llama), 2);
  const auto expect_apart = [](const WholeTensor& a, const WholeTensor& b,
                               const std::string& what) {
    EXPECT_NEAR(correlation(a.values, b.values), 0.0,
                kSigmas / std::sqrt(static_cast<double>(a.values.size())))
        << what;
  };
  const WholeTensor& query = first.at("blocks.0.attention.query.weight");
  expect_apart(query, second.at("blocks.0.attention.query.weight"), "seeds");
  expect_apart(query, first.at("blocks.1.attention.query.weight"), "layers");
  expect_apart(query, first.at("blocks.0.attention.output.weight"), "query and output");
  expect_apart(first.at("blocks.0.attention.key.weight"),
               first.at("blocks.0.attention.value.weight"), "key and value");
  expect_apart(first.at("blocks.0.mlp.gate.weight"), first.at("blocks.0.mlp.up.weight"),
               "gate and up");
  expect_apart(first.at("embedding.weight"), first.at("head.weight"), "embedding and head");
}

TEST(Initialization, HasTheSameBitsOnAnyNumberOfRanks) {
  const ProcessGroup alone = world().split(world().rank());
  for (const Family family : {Family::gpt2, Family::llama}) {
    const WholeTensors whole = weights_of(config_of(family), 3, alone);
    const WholeTensors parts = weights_of(config_of(family), 3);
    EXPECT_EQ(whole.size(), parts.size());
    for (const auto& [name, tensor] : whole) {
      EXPECT_EQ(parts.at(name).values == tensor.values, true) << name;
    }
  }
}

}  // namespace
}  // namespace redspine::testing
