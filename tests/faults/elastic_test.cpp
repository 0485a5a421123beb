// Layouts of eight ranks, to and from every other: the same samples, losses equal but for rounding,
// and a checkpoint written right after loading is the one that was loaded. Up to four ranks, and
// bit for bit on one layout: tests/trainer/checkpoint/resume_test.cpp.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "data/io/folders.h"
#include "tests/support/mpi_main.h"
#include "tests/support/training_case.h"
#include "trainer/checkpoint/loader.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kSavedStep = 4;

constexpr Layout kLayouts[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 2}, {2, 4}};

/// A training job on the ranks of a layout, from the start or from a checkpoint.
class Job {
 public:
  Job(const Config& config, const ProcessGroup& ranks, const std::string& checkpoint = "")
      : config_(config),
        device_(make_cpu_device(1)),
        data_(config_),
        trainer_(
            config_, data_, ranks, *device_,
            checkpoint.empty() ? TrainingProgress{} : read_training_record(checkpoint).progress) {
    if (checkpoint.empty()) return;
    load_state(checkpoint, config_.model, trainer_.tensors(),
               {.store = trainer_.model().parameters(), .device = *device_});
  }

  std::vector<StepReport> train_to(std::int64_t step) {
    std::vector<StepReport> steps;
    while (trainer_.progress().step < step) steps.push_back(trainer_.train_step());
    return steps;
  }
  std::vector<StepReport> train_to_end() { return train_to(config_.train.steps); }

  /// Returns the checkpoint's path.
  std::string save(const std::string& folder, const ProcessGroup& ranks) {
    if (ranks.rank() == 0) make_folder(folder);
    ranks.barrier();
    CheckpointSaver saver = make_saver(trainer_, config_.model, folder, *device_);
    saver.save(trainer_.tensors(), record_of(trainer_));
    return saver.take_published().at(0).path;
  }

 private:
  Config config_;
  std::unique_ptr<Device> device_;
  RunData data_;
  Trainer trainer_;
};

void expect_same_course(const std::vector<StepReport>& steps,
                        const std::vector<StepReport>& expected) {
  ASSERT_EQ(steps.size(), expected.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].batch_hash, expected[i].batch_hash);
    EXPECT_EQ(steps[i].samples, expected[i].samples);
    EXPECT_LT(std::abs(steps[i].loss / expected[i].loss - 1.0), 1e-5);
  }
}

void expect_elastic(const ModelConfig& model) {
  const std::string folder = shared_temporary_directory();
  if (world().rank() == 0) write_training_tokens(folder);
  world().barrier();
  const auto config_of = [&](const Layout& layout) {
    return training_config(model, folder, layout.num_data, layout.num_tensor);
  };

  // A run of each that never stops, and its checkpoint on the way.
  std::map<std::string, std::vector<StepReport>> expected;
  std::map<std::string, std::string> saved;
  for (const Layout& layout : kLayouts) {
    const std::string saves = folder + "/" + layout.to_string();
    saved[layout.to_string()] = CheckpointStore(saves, "").path_of(kSavedStep);
    on_layout(layout, [&](const ProcessGroup& ranks) {
      Job job(config_of(layout), ranks);
      job.train_to(kSavedStep);
      job.save(saves, ranks);
      expected[layout.to_string()] = job.train_to_end();
    });
  }

  int num_pairs = 0;
  for (const Layout& from : kLayouts) {
    for (const Layout& to : kLayouts) {
      if (from.num_ranks() < 8 && to.num_ranks() < 8) continue;
      ++num_pairs;
      const std::string again = fmt::format("{}/{}-{}", folder, from.to_string(), to.to_string());
      on_layout(to, [&](const ProcessGroup& ranks) {
        SCOPED_TRACE(fmt::format("{} -> {}", from.to_string(), to.to_string()));
        const std::string& checkpoint = saved[from.to_string()];
        Job job(config_of(to), ranks, checkpoint);
        EXPECT_EQ(tensor_hashes(job.save(again, ranks)), tensor_hashes(checkpoint));
        expect_same_course(job.train_to_end(), expected[to.to_string()]);
      });
    }
  }
  EXPECT_EQ(num_pairs, 20);
}

TEST(Elastic, EightRanksGoOnWhereOthersStoppedAndTheOtherWayRound) {
  for (const auto& [name, model] : stored_models()) {
    SCOPED_TRACE(name);
    expect_elastic(model);
  }
}

// A chain: stopped and saved after every step or two, each time on another layout.
std::map<std::string, std::string> end_of_chain(const ModelConfig& model, const std::string& folder,
                                                const std::vector<Layout>& chain) {
  std::string checkpoint;
  std::map<std::string, std::string> hashes;
  for (std::size_t link = 0; link < chain.size(); ++link) {
    const std::string saves = fmt::format("{}/chain_{}_{}", folder, chain.size(), link);
    on_layout(chain[link], [&](const ProcessGroup& ranks) {
      Config config = training_config(model, folder, chain[link].num_data, chain[link].num_tensor);
      config.batch.micro_batch_size = link % 2 == 0 ? 1 : 2;
      config.run.exact = true;
      config.run.exact_leaves = 4;
      config.run.exact_lanes = 4;
      Job job(config, ranks, checkpoint);
      const auto share = static_cast<std::int64_t>((link + 1) * 8 / chain.size());
      job.train_to(share);
      job.save(saves, ranks);
    });
    const auto step = static_cast<std::int64_t>((link + 1) * 8 / chain.size());
    checkpoint = CheckpointStore(saves, "").path_of(step);
    if (link + 1 == chain.size()) hashes = tensor_hashes(checkpoint);
  }
  return hashes;
}

TEST(Elastic, AnExactRunEndsInTheSameBitsOverAnyChainOfLayouts) {
  for (const auto& [name, model] : stored_models()) {
    SCOPED_TRACE(name);
    const std::string folder = shared_temporary_directory();
    if (world().rank() == 0) write_training_tokens(folder);
    world().barrier();
    const auto undisturbed = end_of_chain(model, folder, {{1, 1}});
    EXPECT_EQ(end_of_chain(model, folder, {{2, 4}, {1, 1}, {4, 2}, {1, 4}, {2, 1}}), undisturbed);
    EXPECT_EQ(end_of_chain(model, folder, {{4, 1}, {1, 2}, {2, 2}, {4, 1}, {2, 4}, {1, 1}, {2, 2}}),
              undisturbed);
  }
}

}  // namespace
}  // namespace redspine::testing
