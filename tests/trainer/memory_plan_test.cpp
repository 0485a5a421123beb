#include "trainer/memory_plan.h"

#include <gtest/gtest.h>

#include "tests/support/far_device.h"
#include "tests/support/run_case.h"

namespace redspine::testing {
namespace {

TEST(MemoryPlan, IsWhatATrainerAllocates) {
  const RunFiles files;
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      Config config = run_config(files, family);
      config.run.precision = precision;
      const MemoryPlan plan = plan_memory(config, world(), DeviceKind::cuda);
      RunData data(config);
      FarDevice device;
      const Trainer trainer(config, data, world(), device);
      const double most =
          world().all_reduce(static_cast<double>(device.used_bytes()), ReduceOp::max);
      EXPECT_LE(most, static_cast<double>(plan.total()));
      EXPECT_GT(most, 0.99 * static_cast<double>(plan.total()));
    }
  }
}

// Only with so many logits does the head take larger chunks of rows on a GPU than on a CPU.
TEST(MemoryPlan, IsThatOfTheKindOfDevice) {
  const RunFiles files;
  Config config = run_config(files, Family::gpt2);
  config.model.vocab_size = 300'000;
  config.batch.micro_batch_size = 8;
  config.batch.global_batch_size = 8 * config.num_data_ranks(world().size());
  const MemoryPlan plan = plan_memory(config, world(), DeviceKind::cuda);
  RunData data(config);
  FarDevice device;
  const Trainer trainer(config, data, world(), device);
  const double most = world().all_reduce(static_cast<double>(device.used_bytes()), ReduceOp::max);
  EXPECT_LE(most, static_cast<double>(plan.total()));
  EXPECT_GT(most, 0.99 * static_cast<double>(plan.total()));
  EXPECT_LT(plan_memory(config, world(), DeviceKind::cpu).activations, plan.activations);
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
  EXPECT_LT(bf16.activations, fp32.activations * 6 / 10);
}

}  // namespace
}  // namespace redspine::testing
