// Training in bf16, on a device that computes in it: the losses of fp32 within rounding, updates
// that bf16 itself could not hold, and a resume that is exact.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/support/random_tensor.h"
#include "tests/support/run_case.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/saver.h"

namespace redspine::testing {
namespace {

Config config_in(Precision precision, const RunFiles& files, Family family) {
  Config config = run_config(files, family);
  config.run.precision = precision;
  config.train.eval_interval = config.train.steps;
  return config;
}

std::vector<float> values_of(RunCase& run, const std::string& name) {
  for (const Parameter& parameter : run.trainer.model().parameters().parameters()) {
    if (parameter.spec.name == name) return from_device(*run.device, parameter.value);
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(Bf16, LossesFollowFp32WithinOnePercent) {
  const RunFiles files;
  for (const Family family : {Family::gpt2, Family::llama}) {
    RunCase exact(config_in(Precision::fp32, files, family));
    RunCase rounded(config_in(Precision::bf16, files, family));
    for (std::int64_t step = 0; step < exact.config.train.steps; ++step) {
      const StepReport expected = exact.trainer.train_step();
      const StepReport report = rounded.trainer.train_step();
      EXPECT_NEAR(report.loss / expected.loss, 1.0, 0.01) << "step " << report.step;
      EXPECT_NE(report.loss, expected.loss) << "nothing was rounded";
    }
    EXPECT_NEAR(rounded.trainer.evaluate()->loss / exact.trainer.evaluate()->loss, 1.0, 0.01);
  }
}

// A weight of 1 plus or minus 1e-4 is 1 in bf16: what moves is the f32 value, and layers read it.
TEST(Bf16, GainsOfNormsMoveByStepsBelowTheirRounding) {
  const RunFiles files;
  Config config = config_in(Precision::bf16, files, Family::llama);
  config.optimizer.learning_rate = 1e-4;
  config.schedule = {.kind = ScheduleKind::constant, .warmup_steps = 0, .decay_steps = 6};
  RunCase run(config);
  run.trainer.train_step();
  for (const float weight : values_of(run, "blocks.0.norm1.weight")) {
    EXPECT_NE(weight, 1.0F);
    EXPECT_NEAR(weight, 1.0F, 2e-4F);
  }
}

TEST(Bf16, WorkingCopiesAreTheRoundedValuesAfterEachUpdate) {
  const RunFiles files;
  RunCase run(config_in(Precision::bf16, files, Family::gpt2));
  for (int step = 0; step < 2; ++step) {
    for (const Parameter& parameter : run.trainer.model().parameters().parameters()) {
      const bool is_norm = parameter.spec.name.find("norm") != std::string::npos;
      EXPECT_EQ(parameter.working.count(), is_norm ? 0 : parameter.value.count());
      if (is_norm) continue;
      const std::vector<float> values = from_device(*run.device, parameter.value);
      const auto working = from_device<BFloat16>(*run.device, parameter.working);
      bool is_rounded = true;
      for (std::size_t i = 0; i < values.size(); ++i) {
        is_rounded = is_rounded && working[i].bits == BFloat16(values[i]).bits;
      }
      EXPECT_TRUE(is_rounded) << parameter.spec.name << " after step " << step;
    }
    run.trainer.train_step();
  }
}

// Micro-batches are added up in f32, so their number does not show.
TEST(Bf16, SixtyFourMicroBatchesAreWorthOne) {
  const RunFiles files;
  Config config = config_in(Precision::bf16, files, Family::gpt2);
  const std::int64_t num_data_ranks = config.num_data_ranks(world().size());
  config.batch.global_batch_size = 64 * num_data_ranks;
  config.batch.micro_batch_size = 1;
  RunCase many(config);
  config.batch.micro_batch_size = 64;
  RunCase one(config);
  const StepReport expected = one.trainer.train_step();
  const StepReport report = many.trainer.train_step();
  EXPECT_NEAR(report.loss / expected.loss, 1.0, 1e-3);
  EXPECT_NEAR(report.gradient_norm / expected.gradient_norm, 1.0, 1e-3);
}

TEST(Bf16, AResumedRunHasTheSameBits) {
  const RunFiles files;
  Config config = config_in(Precision::bf16, files, Family::gpt2);
  config.model.dropout = 0.1;
  RunCase straight(config);
  for (int step = 0; step < 2; ++step) straight.trainer.train_step();
  const CheckpointStore store(files.directory + "/checkpoints", "0123456789abcdef");
  if (world().rank() == 0) std::filesystem::create_directories(store.folder());
  world().barrier();
  TrainingRecord record;
  record.progress = straight.trainer.progress();
  {
    CheckpointSaver saver({.model = config.model, .mode = SaveMode::synchronous, .retention = {}},
                          store, straight.trainer.mesh(), straight.trainer.model().parameters(),
                          *straight.device);
    saver.save(straight.trainer.tensors(), record);
  }
  world().barrier();
  RunCase resumed(config, world(), record.progress);
  load_state(store.path_of(2), config.model, resumed.trainer.tensors(),
             {.store = resumed.trainer.model().parameters(), .device = *resumed.device});
  for (int step = 0; step < 2; ++step) {
    const StepReport expected = straight.trainer.train_step();
    const StepReport report = resumed.trainer.train_step();
    EXPECT_EQ(report.loss, expected.loss);
    EXPECT_EQ(report.gradient_norm, expected.gradient_norm);
  }
  EXPECT_EQ(resumed.parameters() == straight.parameters(), true);
}

}  // namespace
}  // namespace redspine::testing
