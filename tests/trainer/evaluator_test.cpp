#include "trainer/evaluator.h"

#include <gtest/gtest.h>

#include "tests/support/random_tensor.h"
#include "tests/support/run_case.h"
#include "tests/support/test_device.h"

namespace redspine::testing {
namespace {

struct Sums {
  double loss = 0.0;
  std::int64_t tokens = 0;
};

/// The first windows one by one, on a model of this rank's own.
Sums sums_one_by_one(const Config& config, const ValidationData& data, std::int64_t num_windows) {
  const auto device = make_test_device();
  const ProcessGroup alone = world().split(world().rank());
  const ProcessMesh mesh(alone, MeshShape::of(1, 1), *device);
  const MicroBatchShape shape{.num_sequences = 1, .sequence_length = config.batch.sequence_length};
  Gpt model(config.model, shape, config.run.seed, {*device, mesh});
  BatchFeed feed(*device, shape);
  const auto length = static_cast<std::size_t>(shape.sequence_length);
  std::vector<std::int32_t> tokens(length);
  std::vector<std::int32_t> targets(length);
  Sums sums;
  for (std::int64_t window = 0; window < num_windows; ++window) {
    data.fill(window, 1, tokens, targets);
    model.evaluate(feed.windows(tokens, targets));
    sums.loss += model.take_loss_sum().total();
    for (const std::int32_t target : targets) sums.tokens += target >= 0 ? 1 : 0;
  }
  return sums;
}

class Evaluation : public ::testing::Test {
 protected:
  Evaluation() {
    config.train.eval_interval = 1;
    config.model.dropout = 0.2;  // which evaluation leaves out
  }

  RunFiles files;
  Config config = run_config(files, Family::gpt2);
};

TEST_F(Evaluation, CountsEachTokenOnceForAnyLayoutAndMicroBatch) {
  const ValidationData data(config.data, config.batch.sequence_length, config.model.vocab_size);
  // The windows fill no whole number of micro-batches, and the last one is short.
  EXPECT_EQ(data.num_tokens(), 3 * 71 - 1);
  EXPECT_NE(data.num_windows() % 8, 0);
  const Sums expected = sums_one_by_one(config, data, data.num_windows());
  EXPECT_EQ(expected.tokens, data.num_tokens());
  for (int tensor = 1; tensor <= world().size(); ++tensor) {
    if (!MeshShape::fits(world().size(), tensor)) continue;
    for (const std::int64_t micro_batch : {1, 2, 3, 5, 40}) {
      SCOPED_TRACE(::testing::Message() << "tensor " << tensor << ", micro-batch " << micro_batch);
      config.parallel.tensor = tensor;
      config.batch.micro_batch_size = micro_batch;
      config.batch.global_batch_size = micro_batch * config.num_data_ranks(world().size());
      RunCase run(config);
      const std::optional<ValidationReport> report = run.trainer.evaluate();
      EXPECT_EQ(report.has_value(), true);
      if (!report) continue;
      EXPECT_EQ(report->tokens, expected.tokens);
      EXPECT_NEAR(report->loss * static_cast<double>(expected.tokens) / expected.loss, 1.0, 1e-6);
      EXPECT_EQ(report->step, 0);
    }
  }
}

TEST_F(Evaluation, RepeatsItsBitsAndChangesNothing) {
  RunCase run(config);
  const std::vector<float> before = run.parameters();
  const auto first = run.trainer.evaluate();
  const auto second = run.trainer.evaluate();
  EXPECT_EQ(first->loss, second->loss);
  EXPECT_EQ(run.parameters() == before, true);
}

TEST_F(Evaluation, GivesEveryRankTheSameBits) {
  RunCase run(config);
  const double loss = run.trainer.evaluate()->loss;
  const std::string bits(reinterpret_cast<const char*>(&loss), sizeof(loss));
  for (const std::string& other : world().all_gather(bits)) EXPECT_EQ(other == bits, true);
}

TEST_F(Evaluation, EvalBatchesLimitTheSequences) {
  const ValidationData data(config.data, config.batch.sequence_length, config.model.vocab_size);
  config.train.eval_batches = 1;
  const Sums expected = sums_one_by_one(config, data, 8);
  RunCase run(config);
  const auto report = run.trainer.evaluate();
  EXPECT_EQ(report->tokens, expected.tokens);
  EXPECT_EQ(report->tokens, 8 * 16);
  EXPECT_NEAR(report->loss * static_cast<double>(expected.tokens) / expected.loss, 1.0, 1e-6);
}

TEST_F(Evaluation, MoreEvalBatchesThanThereAreTakeAll) {
  config.train.eval_batches = 1000;
  RunCase run(config);
  EXPECT_EQ(run.trainer.evaluate()->tokens, 3 * 71 - 1);
}

TEST_F(Evaluation, WithoutAnIntervalThereIsNone) {
  config.train.eval_interval = 0;
  RunCase run(config);
  EXPECT_EQ(run.trainer.evaluate().has_value(), false);
}

}  // namespace
}  // namespace redspine::testing
