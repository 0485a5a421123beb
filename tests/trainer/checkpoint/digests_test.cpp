// The digests in a checkpoint: those of its files, whatever layout wrote them, and what tells of a
// weight that has changed where no hash does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/io/folders.h"
#include "parallel/group/failure.h"
#include "tests/support/mpi_main.h"
#include "tests/support/tampering.h"
#include "tests/support/training_case.h"
#include "trainer/checkpoint/file_digests.h"
#include "trainer/checkpoint/summary.h"
#include "trainer/checkpoint/verify.h"

namespace redspine::testing {
namespace {

class CheckpointDigests : public ::testing::Test {
 protected:
  CheckpointDigests() : folder_(shared_temporary_directory()) {
    if (world().rank() == 0) write_training_tokens(folder_);
    world().barrier();
    const int num_tensor = world().size() > 1 ? 2 : 1;
    config_ = training_config(stored_models()[0].second, folder_, world().size() / num_tensor,
                              num_tensor);
    data_.emplace(config_);
    trainer_.emplace(config_, *data_, world(), *device_);
    trainer_->train_step();
  }

  void save() {
    make_saver(*trainer_, config_.model, folder_, *device_)
        .save(trainer_->tensors(), record_of(*trainer_));
  }
  std::string failure_of_save() {
    try {
      save();
    } catch (const CollectiveError& error) {
      return error.what();
    }
    return "";
  }
  std::string path() const { return CheckpointStore(folder_, "").path_of(1); }
  // By rank 0, in a checkpoint that all ranks read.
  template <class Action>
  void change(const Action& action) const {
    if (world().rank() == 0) action();
    world().barrier();
  }
  std::vector<std::string> problems() const {
    std::vector<std::string> found = verify_checkpoint(path(), Verification::full, world());
    world().barrier();
    return found;
  }
  void flip(int rank, const std::string& parameter, TensorView flat) {
    if (world().rank() != rank) return;
    flip_bit({.step = 1,
              .rank = rank,
              .place = FaultPlace::weight,
              .tensor = parameter,
              .element = 3,
              .bit = 0},
             trainer_->model().parameters(), flat, *device_);
  }

  static constexpr const char* kTensor = "transformer.h.1.attn.c_attn.weight";
  std::string folder_;
  Config config_;
  std::unique_ptr<Device> device_ = make_cpu_device(1);
  std::optional<RunData> data_;
  std::optional<Trainer> trainer_;
};

TEST_F(CheckpointDigests, AreThoseOfItsFilesAndOfTheStep) {
  save();
  const StateDigests recorded = read_training_record(path()).digests.value();
  EXPECT_EQ(recorded.weights, trainer_->weights_digest());
  EXPECT_EQ(recorded, digests_of_files(path(), world()));
  const CheckpointSummary summary = summarize(path());
  EXPECT_EQ(summary.weights_digest, recorded.weights);
  EXPECT_EQ(summary.exp_avg_digest, recorded.exp_avg);
  EXPECT_EQ(summary.exp_avg_sq_digest, recorded.exp_avg_sq);
  for (const TensorSummary& tensor : summary.tensors) {
    EXPECT_EQ(tensor.digest, recorded.tensors.at(tensor.name)) << tensor.name;
  }
}

TEST_F(CheckpointDigests, AWeightThatChangedIsFoundThoughItsHashWasMadeAnew) {
  save();
  const StateDigests before = digests_of_files(path(), world());
  change([&] { change_by_one_ulp(path(), kTensor, 100); });
  const std::vector<std::string> found = problems();
  EXPECT_EQ(found.size(), 1U) << fmt::format("{}", fmt::join(found, "\n"));
  EXPECT_NE(found.at(0).find(fmt::format("tensor {}: its digest is ", kTensor)), std::string::npos)
      << found.at(0);
  EXPECT_EQ(different_tensors(config_.model, before, digests_of_files(path(), world())),
            std::vector<std::string>{kTensor});
  // What was written down anew is what the files have: only a replay can tell.
  change([&] { record_digests_anew(path()); });
  EXPECT_EQ(problems().size(), 0U);
}

TEST_F(CheckpointDigests, AMomentThatChangedIsFoundToo) {
  save();
  const std::string name = std::string("exp_avg_sq.") + kTensor;
  change([&] { change_by_one_ulp(path(), name, 7); });
  const std::vector<std::string> found = problems();
  EXPECT_EQ(found.size(), 1U);
  EXPECT_NE(found.at(0).find(fmt::format("tensor {}: its digest is ", name)), std::string::npos)
      << found.at(0);
}

TEST_F(CheckpointDigests, ATotalThatIsNotTheSumOfItsTensorsIsFound) {
  save();
  change([&] {
    change_by_one_ulp(path(), kTensor, 0);
    record_digests_anew(path());
    change_by_one_ulp(path(), kTensor, 0);
  });
  EXPECT_EQ(problems().size(), 1U);
}

TEST_F(CheckpointDigests, OneOfAnEarlierVersionHasNoneAndIsSound) {
  save();
  change([&] { forget_digests(path()); });
  EXPECT_EQ(problems().size(), 0U);
  EXPECT_EQ(summarize(path()).weights_digest, trainer_->weights_digest());
}

// After the step and before the save.
TEST_F(CheckpointDigests, WeightsThatChangeInMemoryAreNeverPublished) {
  for (int rank = 0; rank < world().size(); ++rank) {
    flip(rank, "final_norm.weight", trainer_->tensors().values);
    const std::string failure = failure_of_save();
    EXPECT_EQ(failure.find(fmt::format("rank {} @ {}: the parameter final_norm.weight has changed "
                                       "since step 1 left it (digest ",
                                       rank, ProcessGroup::host_name())),
              0)
        << failure;
    flip(rank, "final_norm.weight", trainer_->tensors().values);
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
  world().barrier();
  EXPECT_EQ(failure_of_save(), "");
}

TEST_F(CheckpointDigests, MomentsThatReplicasDisagreeOnAreNeverPublished) {
  if (world().size() == 1) return;
  for (const TensorView& moment : {trainer_->tensors().exp_avg, trainer_->tensors().exp_avg_sq}) {
    flip(world().size() - 1, "position.weight", moment);
    const std::string failure = failure_of_save();
    EXPECT_EQ(failure.find("the save after step 1: the "), 0) << failure;
    EXPECT_NE(failure.find("moments of ranks that hold the same differ: position.weight has the "
                           "digest "),
              std::string::npos)
        << failure;
    flip(world().size() - 1, "position.weight", moment);
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace redspine::testing
