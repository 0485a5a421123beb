// What a save does beside writing the right tensors: in the background, and when it fails.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "data/io/folders.h"
#include "parallel/group/failure.h"
#include "tests/support/mpi_main.h"
#include "tests/support/training_case.h"
#include "trainer/checkpoint/verify.h"

namespace redspine::testing {
namespace {

class SaverTest : public ::testing::Test {
 protected:
  SaverTest() : folder_(shared_temporary_directory()) {
    if (world().rank() == 0) write_training_tokens(folder_);
    world().barrier();
    data_.emplace(config());
    trainer_.emplace(config(), *data_, world(), *device_);
  }

  Config config() const {
    const int num_tensor = world().size() > 1 ? 2 : 1;
    return training_config(stored_models()[0].second, folder_,
                           MeshShape::of(world().size(), num_tensor).size(Axis::data), num_tensor);
  }
  CheckpointSaver saver(SaveMode mode) {
    return make_saver(*trainer_, config().model, folder_, *device_, mode);
  }
  std::string path_of(std::int64_t step) const {
    return CheckpointStore(folder_, "").path_of(step);
  }
  void set_first_weight(float value) {
    device_->upload(trainer_->tensors().values.slice(0, 1),
                    host_view(std::span<const float>(&value, 1)));
  }

  std::string folder_;
  std::unique_ptr<Device> device_ = make_cpu_device(1);
  std::optional<RunData> data_;
  std::optional<Trainer> trainer_;
};

TEST_F(SaverTest, ASaveInTheBackgroundIsOfTheMomentOfTheCall) {
  trainer_->train_step();
  {
    CheckpointSaver background = saver(SaveMode::asynchronous);
    background.save(trainer_->tensors(), record_of(*trainer_));
    trainer_->train_step();
    background.save(trainer_->tensors(), record_of(*trainer_));
    trainer_->train_step();
  }  // waits
  std::optional<Trainer> again(std::in_place, config(), *data_, world(), *device_);
  EXPECT_EQ(verify_checkpoint(path_of(2), Verification::full, world()).size(), 0U);
  again.reset();

  const std::string other = shared_temporary_directory();
  Trainer second(config(), *data_, world(), *device_);
  CheckpointSaver in_front = make_saver(second, config().model, other, *device_);
  for (std::int64_t step = 1; step <= 2; ++step) {
    second.train_step();
    in_front.save(second.tensors(), record_of(second));
    EXPECT_TRUE(tensor_hashes(CheckpointStore(other, "").path_of(step)) ==
                tensor_hashes(path_of(step)));
  }
}

TEST_F(SaverTest, ACheckpointIsToldOnceAndOnlyWhenItIsThere) {
  for (const SaveMode mode : {SaveMode::asynchronous, SaveMode::synchronous}) {
    trainer_->train_step();
    const std::int64_t step = trainer_->progress().step;
    CheckpointSaver both = saver(mode);
    both.save(trainer_->tensors(), record_of(*trainer_));
    std::vector<SaveReport> told = both.take_published();
    const bool was_there = told.size() == 1;
    EXPECT_TRUE(was_there || mode == SaveMode::asynchronous);
    both.wait();
    if (!was_there) told = both.take_published();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].step, step);
    EXPECT_EQ(told[0].path, path_of(step));
    EXPECT_TRUE(std::filesystem::exists(path_of(step)));
    EXPECT_GT(told[0].stall_seconds, 0.0);
    EXPECT_GT(told[0].seconds, mode == SaveMode::asynchronous ? told[0].stall_seconds : 0.0);
    EXPECT_EQ(both.take_published().size(), 0U);
    world().barrier();
  }
}

TEST_F(SaverTest, TheFilesOfAllRanksAreBalanced) {
  saver(SaveMode::synchronous).save(trainer_->tensors(), record_of(*trainer_));
  const auto names = names_in(path_of(0));
  const auto num_models = std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("model-");
  });
  EXPECT_EQ(num_models, world().size());
}

// "VmRSS", or "VmHWM" for the most there was of it since forget_peak().
std::int64_t resident_bytes(const std::string& kind) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t num_kib = 0;
    if (word == kind + ":" && status >> num_kib) return num_kib * 1024;
  }
  throw Error("/proc/self/status does not tell " + kind);
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

TEST_F(SaverTest, ASaveThatIsWaitedForTakesNoMoreMemoryThanAFewTensors) {
  for (const OptimizerPlacement optimizer :
       {OptimizerPlacement::replicated, OptimizerPlacement::sharded}) {
    SCOPED_TRACE(word_of(optimizer));
    Config large = config();
    large.model.num_layers = 4;
    large.model.hidden_size = 512;
    large.model.ffn_size = 2048;
    large.parallel.optimizer = optimizer;
    Trainer trainer(large, *data_, world(), *device_);
    trainer.train_step();
    const std::string folder = shared_temporary_directory();
    CheckpointSaver front =
        make_saver(trainer, large.model, folder, *device_, SaveMode::synchronous);
    forget_peak();
    const std::int64_t before = resident_bytes("VmRSS");
    front.save(trainer.tensors(), record_of(trainer));
    const SaveReport report = front.take_published().at(0);
    const std::int64_t largest = std::int64_t{512} * 2048 * 4;
    EXPECT_GT(report.bytes, 30 * largest);
    EXPECT_LT(resident_bytes("VmHWM") - before, 4 * largest);
  }
}

TEST_F(SaverTest, WeightsThatAreNotFiniteAreNeverPublished) {
  CheckpointSaver front = saver(SaveMode::synchronous);
  front.save(trainer_->tensors(), record_of(*trainer_));
  trainer_->train_step();
  if (world().rank() == world().size() - 1) {
    set_first_weight(std::numeric_limits<float>::infinity());
  }
  try {
    front.save(trainer_->tensors(), record_of(*trainer_));
    ADD_FAILURE() << "the save went through";
  } catch (const CollectiveError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("after step 1 the parameter embedding.weight is not "
                        "finite"),
              std::string::npos)
        << error.what();
  }
  world().barrier();
  EXPECT_FALSE(std::filesystem::exists(path_of(1)));
  EXPECT_EQ(CheckpointStore(folder_, "").steps(), std::vector<std::int64_t>{0});
}

TEST_F(SaverTest, AFailureInTheBackgroundIsOneOfAllRanks) {
  CheckpointSaver background = saver(SaveMode::asynchronous);
  if (world().rank() == 0) write_text(folder_ + "/step_00000001.0123456789abcdef.partial", "");
  world().barrier();
  trainer_->train_step();
  background.save(trainer_->tensors(), record_of(*trainer_));
  EXPECT_THROW(background.wait(), CollectiveError);
  EXPECT_TRUE(background.has_failed());
  EXPECT_EQ(background.take_published().size(), 0U);
  EXPECT_THROW(background.save(trainer_->tensors(), record_of(*trainer_)), CollectiveError);
}

}  // namespace
}  // namespace redspine::testing
