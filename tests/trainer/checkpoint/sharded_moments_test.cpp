// Checkpoints of a sharded optimizer have no shares: what it saves is what a replicated one saves,
// and either goes on from the other's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "data/io/folders.h"
#include "parallel/group/failure.h"
#include "tests/support/run_case.h"
#include "tests/support/training_case.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/summary.h"
#include "trainer/checkpoint/verify.h"

namespace redspine::testing {
namespace {

constexpr OptimizerPlacement kSharded = OptimizerPlacement::sharded;
constexpr OptimizerPlacement kReplicated = OptimizerPlacement::replicated;

class ShardedMoments : public ::testing::Test {
 protected:
  ShardedMoments() {
    if (world().rank() == 0) write_training_tokens(folder_);
    world().barrier();
  }

  // All layouts of the ranks at hand.
  static std::vector<Layout> layouts() {
    std::vector<Layout> all;
    for (int num_tensor = 1; num_tensor <= world().size(); num_tensor *= 2) {
      all.push_back({.num_data = world().size() / num_tensor, .num_tensor = num_tensor});
    }
    return all;
  }
  Config config_for(const ModelConfig& model, const Layout& layout,
                    OptimizerPlacement optimizer) const {
    Config config = training_config(model, folder_, layout.num_data, layout.num_tensor);
    config.train.eval_interval = 0;
    config.parallel.optimizer = optimizer;
    return config;
  }
  // Of equal sums, so that any layout continues any run with its bits.
  Config exact_config_for(const ModelConfig& model, const Layout& layout,
                          OptimizerPlacement optimizer) const {
    Config config = config_for(model, layout, optimizer);
    config.run.exact = true;
    config.run.exact_leaves = 4;
    config.run.exact_lanes = 4;
    config.batch.micro_batch_size = 1;
    return config;
  }

  std::string new_folder() {
    std::string path = fmt::format("{}/saves{}", folder_, number_++);
    if (world().rank() == 0) make_folder(path);
    world().barrier();
    return path;
  }
  static std::string checkpoint_in(const std::string& folder, std::int64_t step) {
    return CheckpointStore(folder, "").path_of(step);
  }
  static void train_to(std::int64_t step, RunCase& run) {
    while (run.trainer.step() < step) run.trainer.train_step();
  }
  // The checkpoint.
  std::string save(RunCase& run, SaveMode mode = SaveMode::synchronous) {
    const std::string saves = new_folder();
    CheckpointSaver saver = make_saver(run.trainer, run.config.model, saves, *run.device, mode);
    saver.save(run.trainer.tensors(), record_of(run.trainer));
    saver.wait();
    world().barrier();
    return checkpoint_in(saves, run.trainer.step());
  }
  static std::unique_ptr<RunCase> resume(const Config& config, const std::string& checkpoint) {
    auto run =
        std::make_unique<RunCase>(config, world(), read_training_record(checkpoint).progress);
    load_state(checkpoint, config.model, run->trainer.tensors(),
               {.store = run->trainer.model().parameters(), .device = *run->device});
    return run;
  }

 private:
  std::string folder_ = shared_temporary_directory();
  int number_ = 0;
};

TEST_F(ShardedMoments, AreSavedAndReadAsWholeTensors) {
  for (const auto& stored : stored_models()) {
    for (const Layout& layout : layouts()) {
      SCOPED_TRACE(stored.first + " on " + layout.to_string());
      RunCase sharded(config_for(stored.second, layout, kSharded));
      train_to(2, sharded);
      const std::string in_front = save(sharded);
      const auto expected = tensor_hashes(in_front);
      EXPECT_EQ(tensor_hashes(save(sharded, SaveMode::asynchronous)) == expected, true);
      EXPECT_EQ(verify_checkpoint(in_front, Verification::full, world()).size(), 0U);
      for (const OptimizerPlacement to : {kReplicated, kSharded}) {
        const auto again = resume(config_for(stored.second, layout, to), in_front);
        EXPECT_EQ(tensor_hashes(save(*again)) == expected, true) << word_of(to);
      }
    }
  }
}

TEST_F(ShardedMoments, AreThoseThatAReplicatedOptimizerHas) {
  for (const auto& stored : stored_models()) {
    SCOPED_TRACE(stored.first);
    std::map<std::string, std::string> expected;
    for (const Layout& layout : layouts()) {
      for (const OptimizerPlacement optimizer : {kReplicated, kSharded}) {
        RunCase run(exact_config_for(stored.second, layout, optimizer));
        train_to(3, run);
        const std::string checkpoint = save(run);
        if (expected.empty()) expected = tensor_hashes(checkpoint);
        EXPECT_EQ(tensor_hashes(checkpoint) == expected, true)
            << layout.to_string() << ", " << word_of(optimizer);
        const CheckpointSummary summary = summarize(checkpoint);
        ASSERT_TRUE(summary.training && summary.training->digests);
        EXPECT_EQ(summary.exp_avg_digest, summary.training->digests->exp_avg);
        EXPECT_EQ(summary.exp_avg_sq_digest, summary.training->digests->exp_avg_sq);
        EXPECT_EQ(summary.weights_digest, run.trainer.weights_digest());
      }
    }
  }
}

// Another layout, another placement, recomputation and share of rows, at every turn of the run.
TEST_F(ShardedMoments, GoOnFromAnyOptionsWithTheSameBits) {
  const ModelConfig model = stored_models()[0].second;
  RunCase straight(exact_config_for(model, layouts().front(), kReplicated));
  train_to(8, straight);
  const auto expected = tensor_hashes(save(straight));
  const std::array placements = {kSharded, kReplicated, kSharded, kSharded};
  const std::array recomputes = {Recompute::block, Recompute::none, Recompute::attention,
                                 Recompute::block};
  std::unique_ptr<RunCase> run;
  std::string checkpoint;
  for (std::size_t turn = 0; turn < placements.size(); ++turn) {
    const Layout layout = layouts()[turn % layouts().size()];
    Config config = exact_config_for(model, layout, placements[turn]);
    config.parallel.recompute = recomputes[turn];
    config.parallel.sequence = turn % 2 == 1;
    run = turn == 0 ? std::make_unique<RunCase>(config) : resume(config, checkpoint);
    train_to(2 * static_cast<std::int64_t>(turn + 1), *run);
    checkpoint = save(*run);
  }
  EXPECT_EQ(tensor_hashes(checkpoint) == expected, true);
}

TEST_F(ShardedMoments, ThatTensorRanksDisagreeOnAreNeverPublished) {
  if (world().size() == 1) return;
  const Layout layout = layouts().at(1);
  RunCase run(config_for(stored_models()[0].second, layout, kSharded));
  train_to(1, run);
  // Of a bias that all tensor ranks hold, on the data rank that updates it.
  const auto& parameters = run.trainer.model().parameters().parameters();
  const auto bias = std::find_if(parameters.begin(), parameters.end(), [](const Parameter& p) {
    return p.spec.name == "blocks.1.mlp.down.bias";
  });
  if (run.trainer.mesh().group(Axis::tensor).rank() == 1 && bias->updated.size() > 0) {
    flip_bit({.step = 1,
              .rank = world().rank(),
              .place = FaultPlace::exp_avg,
              .tensor = bias->spec.name,
              .element = 2,
              .bit = 5},
             run.trainer.model().parameters(), run.trainer.tensors().exp_avg, *run.device);
  }
  std::string failure;
  try {
    save(run);
  } catch (const CollectiveError& error) {
    failure = error.what();
  }
  EXPECT_EQ(failure.find("the save after step 1: the first moments of ranks that hold the same "
                         "differ: blocks.1.mlp.down.bias has the digest "),
            0)
      << failure;
  world().barrier();
}

}  // namespace
}  // namespace redspine::testing
