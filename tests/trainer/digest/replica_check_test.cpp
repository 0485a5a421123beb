// The digest of a model is the same on every layout, and a bit that flips on one rank is told with
// the rank and the step.
#include "trainer/digest/replica_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/collective_failure.h"
#include "tests/support/gather.h"
#include "tests/support/run_case.h"
#include "tests/support/training_case.h"

namespace redspine::testing {
namespace {

// By its definition, from whole tensors.
Digest written_out(Trainer& trainer, Device& device) {
  Digest digest;
  for (const auto& [name, tensor] : gather(trainer.model().parameters(), &Parameter::value,
                                           trainer.mesh().group(Axis::tensor), device)) {
    digest += digest_of(tensor.values, digest_key(name, tensor.shape), 0);
  }
  return digest;
}

TEST(WeightsDigest, OfNewWeightsIsTheSameOnEveryLayout) {
  const std::string folder = shared_temporary_directory();
  if (world().rank() == 0) write_training_tokens(folder);
  world().barrier();
  for (const auto& stored : stored_models()) {
    SCOPED_TRACE(stored.first);
    std::optional<Digest> first;
    for (int num_tensor = 1; num_tensor <= world().size(); num_tensor *= 2) {
      Config config =
          training_config(stored.second, folder, world().size() / num_tensor, num_tensor);
      // Where each data rank has the digests of its own share alone, and where of all.
      config.parallel.optimizer =
          num_tensor == 2 ? OptimizerPlacement::replicated : OptimizerPlacement::sharded;
      const auto device = make_cpu_device(1);
      RunData data(config);
      Trainer trainer(config, data, world(), *device);
      const Digest digest = trainer.weights_digest();
      if (!first) first = digest;
      EXPECT_EQ(digest, *first) << num_tensor;
      EXPECT_EQ(digest, written_out(trainer, *device)) << num_tensor;
      // And so is that which comes out of AdamW's pass.
      for (int step = 0; step < 2; ++step) {
        const StepReport report = trainer.train_step();
        EXPECT_EQ(report.weights_digest, written_out(trainer, *device)) << num_tensor;
      }
    }
  }
}

TEST(WeightsDigest, OfASkippedStepIsThatOfTheLast) {
  const RunFiles files;
  RunCase run(run_config(files, Family::gpt2));
  const Digest before = run.trainer.train_step().weights_digest;
  float& weight = run.trainer.tensors().values.data<float>()[0];
  const float kept = std::exchange(weight, std::numeric_limits<float>::quiet_NaN());
  const StepReport skipped = run.trainer.train_step();
  EXPECT_FALSE(skipped.applied);
  EXPECT_EQ(skipped.weights_digest, before);
  weight = kept;
  EXPECT_NE(run.trainer.train_step().weights_digest, before);
}

TEST(WeightsDigest, OfAFirstStepThatIsSkippedIsThatOfTheWeightsAtTheStart) {
  const RunFiles files;
  Config config = run_config(files, Family::gpt2);
  RunCase good(config);
  RunCase run(config);
  float& weight = run.trainer.tensors().values.data<float>()[0];
  weight = std::numeric_limits<float>::quiet_NaN();
  const StepReport skipped = run.trainer.train_step();
  EXPECT_FALSE(skipped.applied);
  EXPECT_NE(skipped.weights_digest, good.trainer.weights_digest());
  EXPECT_EQ(skipped.weights_digest, written_out(run.trainer, *run.device));
}

class Replicas : public ::testing::Test {
 protected:
  // What the third step ends with on ranks of which one has this fault in it.
  std::string failure_with(const BitFlip& fault, const Config& config) {
    RunCase run(config);
    run.trainer.inject(fault);
    run.trainer.train_step();
    run.trainer.train_step();
    return failure_of([&] { run.trainer.train_step(); });
  }
  static BitFlip flip(int rank, FaultPlace place, const std::string& parameter, int bit) {
    return {.step = 3, .rank = rank, .place = place, .tensor = parameter, .element = 2, .bit = bit};
  }
  static void expect_told(const std::string& failure, const std::string& parameter,
                          const std::string& suspects) {
    EXPECT_EQ(failure.find("step 3: the weights of ranks that hold the same differ: " + parameter +
                           " has the digest "),
              0)
        << failure;
    EXPECT_NE(failure.find("; to be suspected: " + suspects + " ("), std::string::npos)
        << failure << "\nexpected " << suspects;
  }
  static std::string named(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (const int rank : ranks) {
      if (text.back() != ' ') text += ", ";
      text += fmt::format("{} @ {}", rank, ProcessGroup::host_name());
    }
    return text;
  }

  RunFiles files_;
};

// Of two, nobody knows which is right.
TEST_F(Replicas, AFlippedBitOnOneDataRankIsToldInItsStep) {
  if (world().size() == 1) return;
  Config config = run_config(files_, Family::gpt2);
  config.parallel.tensor = 1;
  for (const FaultPlace place : {FaultPlace::weight, FaultPlace::exp_avg, FaultPlace::gradient}) {
    for (int rank = 0; rank < world().size(); ++rank) {
      const std::string parameter = "blocks.1.mlp.up.weight";
      const std::vector<int> suspects = world().size() > 2 ? std::vector{rank} : std::vector{0, 1};
      expect_told(failure_with(flip(rank, place, parameter, 21), config), parameter,
                  named(suspects));
    }
  }
}

TEST_F(Replicas, WhatTensorRanksShareIsComparedAmongThem) {
  if (world().size() == 1) return;
  Config config = run_config(files_, Family::gpt2);
  config.parallel.tensor = world().size();
  for (const std::string parameter :
       {"position.weight", "blocks.0.norm1.weight", "blocks.1.mlp.down.bias", "final_norm.bias"}) {
    for (int rank = 0; rank < world().size(); ++rank) {
      const std::vector<int> suspects = world().size() > 2 ? std::vector{rank} : std::vector{0, 1};
      expect_told(failure_with(flip(rank, FaultPlace::weight, parameter, 20), config), parameter,
                  named(suspects));
    }
  }
}

// Two ranks hold each of the two key/value heads, where there are four.
TEST_F(Replicas, AKeyValueHeadOfSeveralTensorRanksIsComparedAmongThese) {
  if (world().size() < 4) return;
  Config config = run_config(files_, Family::gpt2);
  config.model.num_kv_heads = 2;
  config.parallel.tensor = 4;
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<int> suspects{rank / 2 * 2, rank / 2 * 2 + 1};
    const std::string parameter = "blocks.0.attention.value.weight";
    expect_told(failure_with(flip(rank, FaultPlace::weight, parameter, 20), config), parameter,
                named(suspects));
  }
}

TEST_F(Replicas, OnDataAndTensorRanksBothAreCompared) {
  if (world().size() < 4) return;
  Config config = run_config(files_, Family::llama);
  config.parallel.tensor = 2;
  // A share has two holders, and what is not split has four.
  for (int rank = 0; rank < 4; ++rank) {
    const std::string split = "blocks.1.attention.output.weight";
    expect_told(failure_with(flip(rank, FaultPlace::gradient, split, 27), config), split,
                named({rank % 2, rank % 2 + 2}));
    const std::string shared = "final_norm.weight";
    expect_told(failure_with(flip(rank, FaultPlace::weight, shared, 20), config), shared,
                named({rank}));
  }
}

// The tensor ranks of one data rank update it, and no other does.
TEST_F(Replicas, WhatTensorRanksShareIsComparedWhereTheOptimizerIsSharded) {
  if (world().size() == 1) return;
  Config config = run_config(files_, Family::gpt2);
  config.parallel.tensor = 2;
  config.parallel.optimizer = OptimizerPlacement::sharded;
  const std::string parameter = "final_norm.weight";  // of the first data rank
  for (int rank = 0; rank < 2; ++rank) {
    expect_told(failure_with(flip(rank, FaultPlace::exp_avg, parameter, 21), config), parameter,
                named({0, 1}));
  }
}

TEST_F(Replicas, ASecondMomentThatChangesNoWeightIsNotToldYet) {
  Config config = run_config(files_, Family::gpt2);
  config.parallel.tensor = 1;
  EXPECT_EQ(
      failure_with(flip(world().size() - 1, FaultPlace::exp_avg_sq, "blocks.1.mlp.up.weight", 0),
                   config),
      "");
}

TEST_F(Replicas, NothingIsComparedWhereTheRunDoesNotWantIt) {
  Config config = run_config(files_, Family::gpt2);
  config.parallel.tensor = tensor_degree();
  config.run.check_replicas = false;
  EXPECT_EQ(
      failure_with(flip(world().size() - 1, FaultPlace::weight, "final_norm.bias", 3), config), "");
}

TEST_F(Replicas, NothingIsToldOfRanksThatAgree) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    RunCase run(run_config(files_, family));
    for (int step = 0; step < 20; ++step) {
      EXPECT_EQ(failure_of([&] { run.trainer.train_step(); }), "");
    }
  }
}

}  // namespace
}  // namespace redspine::testing
