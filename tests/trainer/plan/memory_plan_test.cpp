#include "trainer/plan/memory_plan.h"

#include <gtest/gtest.h>

#include "tests/support/far_device.h"
#include "tests/support/run_case.h"
#include "trainer/plan/planned_rank.h"

namespace redspine::testing {
namespace {

void expect_plan_is_what_a_trainer_allocates(const Config& config) {
  RunData data(config);
  FarDevice device;
  const Trainer trainer(config, data, world(), device);
  EXPECT_EQ(PlannedRank(config, world(), DeviceKind::cuda).memory().total(), device.used_bytes());
}

// Of both families, in both precisions, and with all that changes what is allocated.
std::vector<Config> configs_of_all_kinds(const RunFiles& files) {
  std::vector<Config> configs;
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const Recompute recompute : {Recompute::none, Recompute::attention, Recompute::block}) {
      for (const std::int64_t tensor : {1, tensor_degree()}) {
        Config config = run_config(files, family);
        config.parallel.recompute = recompute;
        config.parallel.tensor = tensor;
        config.batch.micro_batch_size = 2;
        config.model.vocab_size = 257;
        configs.push_back(config);
        config.parallel.optimizer = OptimizerPlacement::sharded;
        configs.push_back(config);
        config.parallel.sequence = true;
        configs.push_back(config);
        config.run.precision = Precision::bf16;
        configs.push_back(config);
        config.parallel.optimizer = OptimizerPlacement::replicated;
        config.parallel.sequence = false;
        configs.push_back(config);
        config.run.precision = Precision::fp32;
        config.run.device = DeviceChoice::cpu;
        config.run.exact = true;
        config.run.exact_leaves = 4;
        config.run.exact_lanes = 4;
        configs.push_back(config);
      }
    }
  }
  return configs;
}

TEST(MemoryPlan, OfRanksThatAreOnlyThoughtOfIsThatOfTheRanks) {
  const RunFiles files;
  const std::vector<Config> configs = configs_of_all_kinds(files);
  EXPECT_GE(configs.size(), 24U);
  for (const Config& config : configs) {
    for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
      EXPECT_EQ(plan_memory(config, world().size(), kind), plan_memory(config, world(), kind))
          << to_string(plan_memory(config, world().size(), kind)) << '\n'
          << to_string(plan_memory(config, world(), kind));
    }
  }
}

TEST(MemoryPlan, IsWhatATrainerAllocatesToTheByte) {
  const RunFiles files;
  for (const Config& config : configs_of_all_kinds(files)) {
    if (!config.run.exact) expect_plan_is_what_a_trainer_allocates(config);
  }
}

// What a block leaves of each row of a micro-batch, on one tensor rank.
struct SavedOfARow {
  std::int64_t attention;
  std::int64_t mlp;
};
SavedOfARow saved_floats(const ModelConfig& model) {
  const std::int64_t hidden = model.hidden_size;
  const std::int64_t kv_size = model.num_kv_heads * model.head_size();
  const std::int64_t statistics = model.norm == NormKind::layernorm ? 2 : 1;
  const std::int64_t qkv = hidden + 2 * kv_size;
  const std::int64_t normed = hidden + statistics;
  const std::int64_t up = is_gated(model.activation) ? 2 * model.ffn_size : model.ffn_size;
  return {.attention = normed + qkv + hidden + model.num_heads,
          .mlp = hidden + normed + up + model.ffn_size};
}

// Shares end with rows: the largest is larger by less than a row for each bucket.
TEST(MemoryPlan, AShardedOptimizerHasItsShareOfTheMoments) {
  const RunFiles files;
  for (const Family family : {Family::gpt2, Family::llama}) {
    Config config = run_config(files, family);
    config.parallel.tensor = 1;
    config.batch.micro_batch_size = 1;
    const MemoryPlan whole = plan_memory(config, world(), DeviceKind::cpu);
    config.parallel.optimizer = OptimizerPlacement::sharded;
    const MemoryPlan shared = plan_memory(config, world(), DeviceKind::cpu);
    EXPECT_EQ(shared.parameters, whole.parameters);
    EXPECT_EQ(shared.gradients, whole.gradients);
    EXPECT_EQ(shared.activations(), whole.activations());
    const std::int64_t num_buckets = config.model.num_layers + 2;
    const std::int64_t of_rows = 2 * num_buckets * config.model.ffn_size * 4;
    EXPECT_GE(world().size() * shared.optimizer, whole.optimizer);
    EXPECT_LE(shared.optimizer, whole.optimizer / world().size() + of_rows);
  }
}

// Each rank keeps its rows of the residual stream and of what norms leave, and the others' of one
// input alone.
TEST(MemoryPlan, SharedRowsSaveWhatTensorRanksWouldHaveAlike) {
  if (world().size() == 1) return;
  const RunFiles files;
  for (const Family family : {Family::gpt2, Family::llama}) {
    Config config = run_config(files, family);
    config.parallel.tensor = 2;
    config.batch.micro_batch_size = 1;
    config.batch.sequence_length = 16;
    const MemoryPlan whole = plan_memory(config, world(), DeviceKind::cpu);
    config.parallel.sequence = true;
    const MemoryPlan shared = plan_memory(config, world(), DeviceKind::cpu);
    EXPECT_EQ(shared.parameters, whole.parameters);
    EXPECT_EQ(shared.optimizer, whole.optimizer);
    const std::int64_t hidden = config.model.hidden_size;
    const std::int64_t statistics = config.model.norm == NormKind::layernorm ? 2 : 1;
    const std::int64_t layers = config.model.num_layers;
    // The stream before, within and after blocks, and its gradient; two norms a block, and a last.
    const std::int64_t of_row =
        hidden * (2 * layers + 2) + (2 * layers) * hidden + (2 * layers + 1) * statistics;
    constexpr std::int64_t kFloatBytes = sizeof(float);
    EXPECT_EQ(whole.activations() - shared.activations(), 8 * of_row * kFloatBytes);
  }
}

TEST(MemoryPlan, RecomputationSavesWhatAllBlocksButOneWouldKeep) {
  const RunFiles files;
  for (const Family family : {Family::gpt2, Family::llama}) {
    Config config = run_config(files, family);
    config.parallel.tensor = 1;
    config.batch.micro_batch_size = 1;
    config.model.num_layers = 5;
    const auto activations = [&](Recompute recompute) {
      config.parallel.recompute = recompute;
      return plan_memory(config, world(), DeviceKind::cpu).activations();
    };
    const std::int64_t kept = activations(Recompute::none);
    const SavedOfARow saved = saved_floats(config.model);
    const std::int64_t rows = 4 * config.batch.sequence_length;  // of blocks that share one set
    constexpr std::int64_t kFloatBytes = sizeof(float);
    EXPECT_EQ(kept - activations(Recompute::attention), rows * saved.attention * kFloatBytes);
    EXPECT_EQ(kept - activations(Recompute::block),
              rows * (saved.attention + saved.mlp) * kFloatBytes);
  }
}

// Only with so many logits does the head take larger chunks of rows on a GPU than on a CPU.
TEST(MemoryPlan, IsThatOfTheKindOfDevice) {
  const RunFiles files;
  Config config = run_config(files, Family::gpt2);
  config.model.vocab_size = 300'000;
  config.batch.micro_batch_size = 8;
  config.batch.global_batch_size = 8 * config.num_data_ranks(world().size());
  expect_plan_is_what_a_trainer_allocates(config);
  EXPECT_LT(plan_memory(config, world(), DeviceKind::cpu).activations(),
            plan_memory(config, world(), DeviceKind::cuda).activations());
}

TEST(MemoryPlan, Bf16HalvesActivationsAndAddsWhatLayersRead) {
  const RunFiles files;
  Config config = run_config(files, Family::gpt2);
  config.batch.micro_batch_size = 8 / config.num_data_ranks(world().size());
  const MemoryPlan fp32 = plan_memory(config, world(), DeviceKind::cpu);
  config.run.precision = Precision::bf16;
  const MemoryPlan bf16 = plan_memory(config, world(), DeviceKind::cpu);
  EXPECT_EQ(2 * bf16.parameters, 3 * fp32.parameters);
  EXPECT_EQ(bf16.gradients, fp32.gradients);
  EXPECT_EQ(bf16.optimizer, fp32.optimizer);
  EXPECT_LT(bf16.activations(), fp32.activations() * 6 / 10);
}

}  // namespace
}  // namespace redspine::testing
