// Saving and resuming on the ranks at hand: bit for bit on one layout, and from any layout to any
// other.
#include "trainer/checkpoint/resume.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "data/io/folders.h"
#include "tests/support/mpi_main.h"
#include "tests/support/training_case.h"
#include "trainer/checkpoint/loader.h"

namespace redspine::testing {
namespace {

// Those of the world and of parts of it; ranks beyond a layout wait.
std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const Layout layout : {Layout{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}}) {
    if (layout.num_ranks() <= world().size()) all.push_back(layout);
  }
  return all;
}

struct Trajectory {
  std::vector<StepReport> steps;
  std::vector<ValidationReport> validations;
};

// The state of a training job on the ranks of a layout.
struct Job {
  Job(const Config& job_config, const ProcessGroup& ranks, const TrainingProgress& progress = {})
      : config(job_config),
        device(make_cpu_device(1)),
        data(config),
        trainer(config, data, ranks, *device, progress) {}

  void load(const std::string& directory) {
    load_state(directory, config.model, trainer.tensors(),
               {.store = trainer.model().parameters(), .device = *device});
  }
  void save(const std::string& folder) {
    make_saver(trainer, config.model, folder, *device).save(trainer.tensors(), record_of(trainer));
  }
  void train_to(std::int64_t step, Trajectory& run) {
    while (trainer.progress().step < step) {
      run.steps.push_back(trainer.train_step());
      if (trainer.progress().step % config.train.eval_interval != 0) continue;
      const std::optional<ValidationReport> validation = trainer.evaluate();
      if (validation) run.validations.push_back(*validation);
    }
  }

  Config config;
  std::unique_ptr<Device> device;
  RunData data;
  Trainer trainer;
};

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  return CheckpointStore(folder, "").path_of(step);
}

void expect_same_steps(const Trajectory& a, const Trajectory& b) {
  EXPECT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < std::min(a.steps.size(), b.steps.size()); ++i) {
    EXPECT_EQ(a.steps[i].loss, b.steps[i].loss) << "step " << i + 1;
    EXPECT_EQ(a.steps[i].gradient_norm, b.steps[i].gradient_norm) << "step " << i + 1;
    EXPECT_EQ(a.steps[i].learning_rate, b.steps[i].learning_rate) << "step " << i + 1;
    EXPECT_EQ(a.steps[i].batch_hash, b.steps[i].batch_hash) << "step " << i + 1;
    EXPECT_EQ(a.steps[i].weights_digest, b.steps[i].weights_digest) << "step " << i + 1;
    EXPECT_EQ(a.steps[i].samples, b.steps[i].samples) << "step " << i + 1;
    EXPECT_EQ(a.steps[i].tokens, b.steps[i].tokens) << "step " << i + 1;
  }
  EXPECT_EQ(a.validations.size(), b.validations.size());
  for (std::size_t i = 0; i < std::min(a.validations.size(), b.validations.size()); ++i) {
    EXPECT_EQ(a.validations[i].loss, b.validations[i].loss);
  }
}

TEST(Resume, IsBitExactFromEveryStepOnTheSameLayout) {
  const std::string folder = shared_temporary_directory();
  if (world().rank() == 0) write_training_tokens(folder);
  world().barrier();
  int number = 0;
  for (const auto& [name, model] : stored_models()) {
    for (const Layout& layout : layouts()) {
      if (layout.num_ranks() != world().size()) continue;
      SCOPED_TRACE(name + " on " + layout.to_string());
      const std::string saves = fmt::format("{}/exact{}", folder, number++);
      if (world().rank() == 0) make_folder(saves);
      world().barrier();
      const Config config = training_config(model, folder, layout.num_data, layout.num_tensor);
      Trajectory straight;
      {
        Job job(config, world());
        for (std::int64_t step = 1; step <= config.train.steps; ++step) {
          job.train_to(step, straight);
          job.save(saves);  // changes nothing that the steps after it depend on
        }
      }
      const auto expected = tensor_hashes(checkpoint_path(saves, config.train.steps));
      for (std::int64_t k = 1; k < config.train.steps; ++k) {
        SCOPED_TRACE(fmt::format("from step {}", k));
        const std::string from = checkpoint_path(saves, k);
        Trajectory resumed;
        resumed.steps.assign(straight.steps.begin(), straight.steps.begin() + k);
        resumed.validations.assign(straight.validations.begin(),
                                   straight.validations.begin() + k / config.train.eval_interval);
        Job job(config, world(), read_training_record(from).progress);
        job.load(from);
        job.train_to(config.train.steps, resumed);
        expect_same_steps(resumed, straight);
        const std::string again = fmt::format("{}/from{}", saves, k);
        if (world().rank() == 0) make_folder(again);
        world().barrier();
        job.save(again);
        EXPECT_TRUE(tensor_hashes(checkpoint_path(again, config.train.steps)) == expected);
        world().barrier();
      }
    }
  }
}

TEST(Resume, TakesAnyLayoutToAnyOther) {
  const std::string folder = shared_temporary_directory();
  if (world().rank() == 0) write_training_tokens(folder);
  world().barrier();
  constexpr std::int64_t kHalf = 4;
  int number = 0;
  for (const auto& stored : stored_models()) {
    // Clang 14 takes no structured binding into a lambda.
    const std::string& name = stored.first;
    const ModelConfig& model = stored.second;
    std::map<std::string, Trajectory> runs;  // of each layout, never stopped
    std::map<std::string, std::string> saved;
    for (const Layout& layout : layouts()) {
      const std::string saves = fmt::format("{}/elastic{}", folder, number++);
      saved[layout.to_string()] = checkpoint_path(saves, kHalf);
      on_layout(layout, [&](const ProcessGroup& ranks) {
        if (ranks.rank() == 0) make_folder(saves);
        ranks.barrier();
        Job job(training_config(model, folder, layout.num_data, layout.num_tensor), ranks);
        Trajectory& run = runs[layout.to_string()];
        job.train_to(kHalf, run);
        job.save(saves);
        job.train_to(job.config.train.steps, run);
      });
    }
    for (const Layout& from : layouts()) {
      for (const Layout& to : layouts()) {
        const std::string& checkpoint = saved[from.to_string()];
        const std::string again = fmt::format("{}/again{}", folder, number++);
        on_layout(to, [&](const ProcessGroup& ranks) {
          SCOPED_TRACE(fmt::format("{}: {} -> {}", name, from.to_string(), to.to_string()));
          if (ranks.rank() == 0) make_folder(again);
          ranks.barrier();
          Job job(training_config(model, folder, to.num_data, to.num_tensor), ranks,
                  read_training_record(checkpoint).progress);
          job.load(checkpoint);
          const StateDigests digests = read_training_record(checkpoint).digests.value();
          EXPECT_EQ(job.trainer.weights_digest(), digests.weights);
          job.save(again);
          EXPECT_EQ(read_training_record(checkpoint_path(again, kHalf)).digests, digests);
          EXPECT_TRUE(tensor_hashes(checkpoint_path(again, kHalf)) == tensor_hashes(checkpoint));
          Trajectory resumed;
          job.train_to(job.config.train.steps, resumed);
          const Trajectory& straight = runs[to.to_string()];
          ASSERT_EQ(resumed.steps.size() + kHalf, straight.steps.size());
          for (std::size_t i = 0; i < resumed.steps.size(); ++i) {
            const StepReport& expected = straight.steps[i + kHalf];
            EXPECT_EQ(resumed.steps[i].batch_hash, expected.batch_hash);
            EXPECT_LT(std::abs(resumed.steps[i].loss / expected.loss - 1.0), 1e-5);
          }
        });
      }
    }
  }
}

TEST(InitializeFrom, TakesTheWeightsAndLeavesTheOptimizerFresh) {
  const std::string folder = shared_temporary_directory();
  if (world().rank() == 0) write_training_tokens(folder);
  world().barrier();
  const Config config = training_config(stored_models()[0].second, folder, 1, world().size());
  {
    Job job(config, world());
    Trajectory trained;
    job.train_to(3, trained);
    job.save(folder);
  }
  Job tuned(config, world());
  load_weights(checkpoint_path(folder, 3), config.model,
               {.store = tuned.trainer.model().parameters(), .device = *tuned.device});
  tuned.save(folder);
  const auto before = tensor_hashes(checkpoint_path(folder, 3));
  const auto after = tensor_hashes(checkpoint_path(folder, 0));
  for (const auto& [name, hash] : before) {
    const bool is_weight = !name.starts_with("exp_avg");
    EXPECT_EQ(after.at(name) == hash, is_weight) << name;
  }
  world().barrier();
}

TEST(InitializeFrom, WeightsOfAnotherModelAreRejected) {
  const std::string folder = shared_temporary_directory();
  if (world().rank() == 0) write_training_tokens(folder);
  world().barrier();
  const Config config = training_config(stored_models()[0].second, folder, 1, world().size());
  {
    Job job(config, world());
    job.save(folder);
  }
  const auto error_with = [&](const ModelConfig& model) {
    try {
      check_weights(checkpoint_path(folder, 0), model);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_with(config.model), "no error");
  ModelConfig other = config.model;
  other.num_layers = 3;
  const std::string says = fmt::format(", but {}/config.json says ", checkpoint_path(folder, 0));
  const std::string shapes = ": the tensors of the checkpoint have other shapes or meanings";
  EXPECT_EQ(error_with(other), "model.num_layers: is 3" + says + "2" + shapes);
  other = config.model;
  other.ffn_size = 23;
  EXPECT_EQ(error_with(other), "model.ffn_size: is 23" + says + "22" + shapes);
  other = config.model;
  other.num_heads = other.num_kv_heads = 2;  // the same shapes
  EXPECT_NE(error_with(other).find("model.num_heads: is 2, but "), std::string::npos)
      << error_with(other);
  world().barrier();
}

TEST(Resume, TheNewestGoodCheckpointIsFoundByAllRanks) {
  const std::string folder = shared_temporary_directory();
  if (world().rank() == 0) write_training_tokens(folder);
  world().barrier();
  Job job(training_config(stored_models()[0].second, folder, world().size(), 1), world());
  Trajectory run;
  for (std::int64_t step = 1; step <= 4; ++step) {
    job.train_to(step, run);
    job.save(folder);
  }
  world().barrier();
  if (world().rank() == 0) {
    std::filesystem::remove(checkpoint_path(folder, 4) + "/manifest.json");
    std::filesystem::resize_file(
        checkpoint_path(folder, 3) +
            fmt::format("/optimizer-00001-of-{:05}.safetensors", world().size()),
        100);
  }
  world().barrier();
  const CheckpointStore store(folder, "0123456789abcdef");
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto found = find_resume_point({}, store, world(), warn);
  EXPECT_TRUE(found.has_value());
  EXPECT_EQ(found ? found->record.progress.step : 0, 2);
  EXPECT_EQ(warnings.size(), world().rank() == 0 ? 2U : 0U);
  if (!warnings.empty()) {
    EXPECT_NE(warnings[0].find("it has no manifest.json"), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[1].find("has 100 bytes; the manifest says"), std::string::npos);
  }
  EXPECT_FALSE(find_resume_point({.resume = "none"}, store, world(), warn).has_value());
  for (const std::string& bad : {folder + "/nowhere", checkpoint_path(folder, 3)}) {
    try {
      find_resume_point({.resume = bad}, store, world(), warn);
      ADD_FAILURE() << bad << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.problems().front().key, "checkpoint.resume");
    }
  }
}

}  // namespace
}  // namespace redspine::testing
