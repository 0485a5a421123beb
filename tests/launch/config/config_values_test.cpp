// What values of the configuration must be, by themselves and against one another, once its text is
// read.
#include <gtest/gtest.h>

#include "launch/config/config_file.h"
#include "tests/launch/config/parsed_config.h"

namespace redspine::testing {
namespace {

TEST(ConfigFile, AllProblemsAreListedInOneGo) {
  EXPECT_EQ(problems_of("model:\n"
                        "  num_heads: 5\n"
                        "  num_layrs: 3\n"
                        "  dropout: 1.5\n"
                        "batch:\n"
                        "  sequence_length: 2048\n"
                        "train:\n"
                        "  steps: many\n"
                        "  steps: 3\n",
                        {"schedule.min_ratio=2"}),
            std::string("run.yaml:3:3: model.num_layrs: unknown key; nearest: model.num_layers; "
                        "legal here: family, num_layers, hidden_size, num_heads, num_kv_heads, "
                        "ffn_size, vocab_size, max_sequence_length, position, rope, norm, "
                        "norm_epsilon, activation, bias, tie_embeddings, dropout\n"
                        "run.yaml:8:10: train.steps: read the text \"many\"; ") +
                kWholeNumber +
                "\nrun.yaml:9:3: train.steps: duplicate key; first given at run.yaml:8:3\n"
                "run.yaml: data.train: missing; legal: a list of files, like [{path: data/train, "
                "weight: 1.0}]\n"
                "run.yaml:4:12: model.dropout: is 1.5; legal: 0 (off) to below 1\n"
                "run.yaml:2:14: model.num_heads: is 5, which does not divide model.hidden_size "
                "(768)\n"
                "--set schedule.min_ratio=2: schedule.min_ratio: is 2; legal: 0 to 1\n"
                "run.yaml:6:20: batch.sequence_length: is 2048, longer than "
                "model.max_sequence_length (1024)");
}

TEST(ConfigFile, AWrongTextIsNotBlamedTwice) {
  // 5 heads do not divide the default hidden size, but nobody asked for the default.
  EXPECT_EQ(problems_of(kMinimal + "model: {hidden_size: '640', num_heads: 5}\n"),
            std::string("run.yaml:5:22: model.hidden_size: read the quoted text \"640\"; ") +
                kWholeNumber);
}

TEST(ConfigFile, ADefaultOrPresetThatDoesNotFitIsNamedAsSuch) {
  EXPECT_EQ(problems_of(kMinimal + "model: {hidden_size: 100}\n"),
            "model.num_heads (default): is 12, which does not divide model.hidden_size (100)");
  EXPECT_EQ(problems_of(kMinimal + "model: {max_sequence_length: 0}\n"),
            "run.yaml:5:30: model.max_sequence_length: is 0; legal: 1 to 4194304");
}

TEST(ConfigFile, TheTensorDegreeFitsTheWorldAndTheHeads) {
  EXPECT_EQ(problems_of(kMinimal + "parallel: {tensor: 4}\n", {}, 6),
            "run.yaml:5:20: parallel.tensor: is 4, which does not divide the 6 ranks of this job; "
            "what fits 6 ranks and 12 heads: 1, 2, 3, 6");
  EXPECT_EQ(problems_of(kMinimal + "parallel: {tensor: 8}\n", {}, 8),
            "run.yaml:5:20: parallel.tensor: is 8, which does not divide model.num_heads (12): a "
            "head is never split");
}

TEST(ConfigFile, KeyValueHeadsDivideTheHeadsAndMayBeFewerThanTheTensorDegree) {
  EXPECT_EQ(problems_of(kMinimal + "model: {num_kv_heads: 5}\n"),
            "run.yaml:5:23: model.num_kv_heads: is 5, which does not divide model.num_heads (12)");
  EXPECT_EQ(problems_of(kMinimal + "model: {num_kv_heads: 2}\nparallel: {tensor: 4}\n", {}, 4), "");
}

TEST(ConfigFile, TheGlobalBatchSplitsEvenlyAndTheNeighboursAreNamed) {
  EXPECT_EQ(problems_of(kMinimal + "batch: {global_batch_size: 100, micro_batch_size: 8}\n"
                                   "parallel: {tensor: 2}\n",
                        {}, 8),
            "run.yaml:5:28: batch.global_batch_size: is 100, which is no multiple of 32 sequences "
            "(4 data ranks x batch.micro_batch_size 8); nearest: 96 and 128");
  EXPECT_EQ(problems_of(kMinimal + "batch: {global_batch_size: 3, micro_batch_size: 4}\n"),
            "run.yaml:5:28: batch.global_batch_size: is 3, which is no multiple of 4 sequences (1 "
            "data rank x batch.micro_batch_size 4); nearest: 4");
}

TEST(ConfigFile, ExactModeTakesEightLeavesAndLanesWhereNoneAreGiven) {
  const Config config = parse(kMinimal + "run: {exact: true}\nbatch: {global_batch_size: 64}\n");
  EXPECT_EQ(config.run.exact_leaves, 8);
  EXPECT_EQ(config.run.exact_lanes, 8);
  const Config odd = parse(kMinimal +
                           "run: {exact: true, exact_lanes: 0}\n"
                           "batch: {global_batch_size: 12, micro_batch_size: 3}\n");
  EXPECT_EQ(odd.run.exact_lanes, 4) << "the largest power of two that divides the batch";
  EXPECT_EQ(parse(kMinimal).run.exact_leaves, 0) << "nothing outside of exact mode";
}

TEST(ConfigFile, ALayoutThatExactModeCannotServeIsRejectedWithWhatFits) {
  const std::string exact = kMinimal + "run: {exact: true}\n";
  EXPECT_EQ(
      problems_of(exact + "parallel: {tensor: 3}\n"
                          "batch: {global_batch_size: 24, micro_batch_size: 1}\n",
                  {}, 3),
      "run.exact_leaves (from run.exact): is 8, which parallel.tensor (3) does not divide; what "
      "fits: a multiple of it, the same for every start of the run, or one of these for "
      "parallel.tensor: 1, 2, 4");
  EXPECT_EQ(
      problems_of(exact + "batch: {global_batch_size: 24, micro_batch_size: 1}\n", {}, 3),
      "run.exact_lanes (from batch.global_batch_size): is 8, which 3 data ranks do not share "
      "evenly; what fits: a multiple of 3 that divides batch.global_batch_size (24), the same "
      "for every start of the run");
  EXPECT_EQ(
      problems_of(exact + "batch: {global_batch_size: 32, micro_batch_size: 8}\n"),
      "run.yaml:6:50: batch.micro_batch_size: is 8, which does not divide the 4 sequences of a "
      "lane (batch.global_batch_size 32 / run.exact_lanes 8)");
  EXPECT_EQ(problems_of(kMinimal + "run: {exact: true, exact_lanes: 5}\n"
                                   "batch: {global_batch_size: 32, micro_batch_size: 1}\n"),
            "run.yaml:5:33: run.exact_lanes: is 5, which does not divide batch.global_batch_size "
            "(32); what fits: 0, which is 8");
}

TEST(ConfigFile, ASpotCheckNeedsASecondDataRank) {
  const std::string checked = kMinimal +
                              "run: {spot_check_interval: 10}\n"
                              "parallel: {tensor: 2}\n";
  EXPECT_EQ(problems_of(checked, {}, 2),
            "run.yaml:5:28: run.spot_check_interval: is 10, but with one data rank no other ranks "
            "have the same weights to compute a block again; legal with it: 0");
  EXPECT_EQ(problems_of(checked, {}, 4), "");
}

TEST(ConfigFile, ExactModeIsThatOfFp32OnCpus) {
  EXPECT_EQ(problems_of(kMinimal + "run: {exact: true, precision: bf16}\n"),
            "run.yaml:5:14: run.exact: is true, but run.precision is bf16; legal with it: fp32");
  EXPECT_EQ(problems_of(kMinimal + "run: {exact: true, device: cuda}\n"),
            "run.yaml:5:14: run.exact: is true, but run.device is cuda; legal with it: cpu");
}

TEST(ConfigFile, RotaryHeadsAreEven) {
  EXPECT_EQ(problems_of(kMinimal + "model: {position: rope, hidden_size: 9, num_heads: 3}\n"),
            "run.yaml:5:52: model.num_heads: is 3, which gives heads of 3 = 9 / 3; rotary "
            "positions turn pairs, so the head size must be even");
}

TEST(ConfigFile, WhatIsNotBuiltIsSaidHonestly) {
  const std::string all =
      problems_of(kMinimal + "run: {device: cpu, precision: bf16, collectives: nccl}\n");
  for (const std::string part :
       {"run.yaml:5:31: run.precision: is bf16, but run.device is cpu",
        "run.yaml:5:50: run.collectives: is nccl, but run.device is cpu"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\nin\n" << all;
  }
}

TEST(ConfigFile, AProblemFoundLaterGetsThePlaceOfItsKey) {
  const EffectiveConfig effective = parse_config(
      "train: {steps: 1}\ndata:\n  train:\n    - {path: a}\n    - path: b\n", "run.yaml", {}, 1);
  const ConfigError error =
      with_places(ConfigError(std::vector<ConfigProblem>{{"data.train[1].path", "is no file"},
                                                         {"data.train[0]", "is odd"}}),
                  effective);
  EXPECT_STREQ(error.what(),
               "run.yaml:5:13: data.train[1].path: is no file\n"
               "run.yaml:4:7: data.train[0]: is odd");
}

}  // namespace
}  // namespace redspine::testing
