// A hundred bits flip, each in a run of its own on one rank of a job: in weights, moments,
// gradients and activations that are drawn once and for all. What becomes of one is seen by
// comparing the rank with that of an undisturbed run; whatever other ranks can know of it is told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <map>
#include <set>

#include "tensor/philox.h"
#include "tests/support/collective_failure.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_case.h"
#include "tests/support/training_case.h"

namespace redspine::testing {
namespace {

constexpr std::uint32_t kNumFlips = 100;
constexpr std::int64_t kNumSteps = 3;

using Bits = std::vector<std::uint32_t>;

// Everything that a rank has of a step when it is done.
struct StepBits {
  Bits values;
  Bits gradients;
  Bits exp_avg;
  Bits exp_avg_sq;
};

Bits bits_of(Device& device, ConstTensorView view) {
  Bits bits;
  for (const float value : from_device(device, view)) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

StepBits bits_of(RunCase& run) {
  const TrainingTensors tensors = run.trainer.tensors();
  return {.values = bits_of(*run.device, tensors.values),
          .gradients = bits_of(*run.device, run.trainer.model().parameters().gradients()),
          .exp_avg = bits_of(*run.device, tensors.exp_avg),
          .exp_avg_sq = bits_of(*run.device, tensors.exp_avg_sq)};
}

// On any rank.
bool differ(const Bits& a, const Bits& b) {
  return world().all_reduce(a == b ? 0.0 : 1.0, ReduceOp::max) > 0.0;
}

const char* const kActivations[] = {"input",   "normed1", "qkv",    "context",        "mid",
                                    "normed2", "up",      "hidden", "output_gradient"};

class Corruption : public ::testing::Test {
 protected:
  // Two data ranks, or two by two; every other flip meets exact mode.
  Config config(bool is_exact) {
    Config config = run_config(files_, is_exact ? Family::llama : Family::gpt2);
    config.parallel.tensor = world().size() / 2;
    config.run.exact = is_exact;
    config.run.exact_leaves = is_exact ? 4 : 0;
    config.run.exact_lanes = is_exact ? 2 : 0;
    return config;
  }

  const StepBits& undisturbed(bool is_exact, std::int64_t step) {
    std::vector<StepBits>& steps = undisturbed_[is_exact];
    if (steps.empty()) {
      RunCase run(config(is_exact));
      for (std::int64_t s = 0; s < kNumSteps; ++s) {
        run.trainer.train_step();
        steps.push_back(bits_of(run));
      }
    }
    return steps[static_cast<std::size_t>(step - 1)];
  }

  // What this rank has of flip `index`: only that of the rank that it names counts.
  static BitFlip flip_of(std::uint32_t index, FaultPlace place, RunCase& run) {
    constexpr std::uint64_t kKey = 0x5EED0FB175;
    const PhiloxCounter when = philox4x32(kKey, {index, 0, 0, 0});
    const PhiloxCounter where = philox4x32(kKey, {index, 1, 0, 0});
    BitFlip flip{.step = 1 + when[0] % kNumSteps,
                 .rank = static_cast<int>(when[1] % static_cast<std::uint32_t>(world().size())),
                 .place = place,
                 .tensor = "",
                 .element = 0,
                 .bit = static_cast<int>(when[2] % 32)};
    const Config& config = run.config;
    if (place == FaultPlace::activation) {
      const std::int64_t block =
          SpotCheck::block_of(config.run.seed, config.model.num_layers, flip.step);
      flip.tensor = fmt::format("blocks.{}.{}", block, kActivations[where[0] % 9]);
      flip.element = where[1] % (config.batch.micro_batch_size * config.batch.sequence_length *
                                 config.model.hidden_size / config.parallel.tensor);
      return flip;
    }
    const std::vector<Parameter>& parameters = run.trainer.model().parameters().parameters();
    const Parameter& parameter = parameters[where[0] % parameters.size()];
    flip.tensor = parameter.spec.name;
    flip.element = where[1] % parameter.value.count();
    return flip;
  }

  // What the step of the flip ends with.
  static std::string failure_with(const BitFlip& flip, RunCase& run) {
    run.trainer.inject(flip);
    while (run.trainer.step() + 1 < flip.step) run.trainer.train_step();
    return failure_of([&] { run.trainer.train_step(); });
  }

  std::string failure_of_save(RunCase& run) {
    const std::string folder = fmt::format("{}/{}", files_.directory, ++num_saves_);
    std::filesystem::create_directories(folder);
    world().barrier();
    CheckpointSaver saver = make_saver(run.trainer, run.config.model, folder, *run.device);
    return failure_of([&] { saver.save(run.trainer.tensors(), record_of(run.trainer)); });
  }

  // A flip that leaves something in the weights is told in its step, one that leaves something in
  // the moments alone by the save.
  void expect_told_of_state(std::uint32_t index, FaultPlace place) {
    const bool is_exact = index % 2 != 0;
    RunCase run(config(is_exact));
    const BitFlip flip = flip_of(index, place, run);
    const std::string failure = failure_with(flip, run);
    const StepBits now = bits_of(run);
    const StepBits& clean = undisturbed(is_exact, flip.step);
    if (differ(now.values, clean.values)) {
      EXPECT_EQ(failure.find(fmt::format(
                    "step {}: the weights of ranks that hold the same differ: ", flip.step)),
                0U)
          << failure;
      ++num_told_;
      return;
    }
    EXPECT_EQ(failure, "");
    const bool is_in_moments =
        differ(now.exp_avg, clean.exp_avg) || differ(now.exp_avg_sq, clean.exp_avg_sq);
    const std::string failure_of_next_save = failure_of_save(run);
    EXPECT_EQ(failure_of_next_save.empty(), !is_in_moments) << failure_of_next_save;
    if (is_in_moments) ++num_told_;
  }

  // One that changes a gradient, be it of a block before, is told in its step.
  void expect_told_of_activation(std::uint32_t index) {
    const bool is_exact = index % 2 != 0;
    Config checked = config(is_exact);
    checked.run.spot_check_interval = 1;
    RunCase run(checked);
    const BitFlip flip = flip_of(index, FaultPlace::activation, run);
    const std::string failure = failure_with(flip, run);
    const bool is_told = !failure.empty();
    if (is_told) {
      EXPECT_EQ(failure.find(fmt::format("step {}: spot check: ", flip.step)), 0U) << failure;
      ++num_told_;
    }
    Config unchecked = config(is_exact);
    unchecked.run.check_replicas = false;
    RunCase disturbed(unchecked);
    EXPECT_EQ(failure_with(flip, disturbed), "");
    const bool differs =
        differ(bits_of(disturbed).gradients, undisturbed(is_exact, flip.step).gradients);
    EXPECT_TRUE(is_told || !differs);
  }

  RunFiles files_;
  std::map<bool, std::vector<StepBits>> undisturbed_;  // [exact][step - 1]
  int num_saves_ = 0;
  int num_told_ = 0;
};

TEST_F(Corruption, OfOneBitIsToldWhereAnythingIsLeftOfIt) {
  constexpr std::array kPlaces = {FaultPlace::weight, FaultPlace::exp_avg, FaultPlace::exp_avg_sq,
                                  FaultPlace::gradient, FaultPlace::activation};
  for (std::uint32_t index = 0; index < kNumFlips; ++index) {
    const FaultPlace place = kPlaces[index % kPlaces.size()];
    SCOPED_TRACE(fmt::format("flip {}: {}", index, word_of(place)));
    if (place == FaultPlace::activation) {
      expect_told_of_activation(index);
    } else {
      expect_told_of_state(index, place);
    }
  }
  // Of the others rounding has left nothing.
  EXPECT_GE(num_told_, 70);
}

TEST_F(Corruption, IsNotToldInTwoHundredStepsWithoutAny) {
  for (const bool is_exact : {false, true}) {
    Config checked = config(is_exact);
    checked.run.spot_check_interval = 1;
    checked.train.steps = 200;
    checked.schedule.decay_steps = 200;
    RunCase run(checked);
    while (run.trainer.step() < checked.train.steps) {
      ASSERT_EQ(failure_of([&] { run.trainer.train_step(); }), "") << run.trainer.step();
    }
    EXPECT_EQ(failure_of_save(run), "");
  }
}

}  // namespace
}  // namespace redspine::testing
