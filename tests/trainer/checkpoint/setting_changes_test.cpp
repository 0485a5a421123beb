#include "trainer/checkpoint/setting_changes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace redspine {
namespace {

std::vector<SettingChange> change(const std::string& key) {
  return changed_settings({{"run.seed", "1"}, {key, "old"}}, {{"run.seed", "1"}, {key, "new"}});
}

TEST(SettingChanges, AreToldWithWhatTheyAffect) {
  const auto changes = change("optimizer.learning_rate");
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].before, "old");
  EXPECT_EQ(changes[0].after, "new");
  EXPECT_EQ(changes[0].effect, "the learning rate from the next step on");
  EXPECT_TRUE(changes[0].is_compatible);
}

TEST(SettingChanges, AnotherModelIsImpossible) {
  for (const char* key : {"model.num_layers", "model.hidden_size", "model.num_heads",
                          "model.vocab_size", "model.tie_embeddings", "model.position"}) {
    ASSERT_EQ(change(key).size(), 1U) << key;
    EXPECT_FALSE(change(key)[0].is_compatible) << key;
  }
  EXPECT_TRUE(change("model.dropout")[0].is_compatible);
}

TEST(SettingChanges, WhatDoesNotTouchTrainingIsLeftOut) {
  for (const char* key : {"run.name", "run.output_dir", "model.family", "checkpoint.keep",
                          "train.log_interval", "data.tokenizer"}) {
    EXPECT_TRUE(change(key).empty()) << key;
  }
}

TEST(SettingChanges, AKeyThatTheCheckpointDoesNotKnowIsNone) {
  EXPECT_TRUE(changed_settings({}, {{"optimizer.beta1", "0.9"}}).empty());
}

TEST(SettingChanges, ANumberThatEarlierVersionsSpelledInAnotherWayIsNone) {
  EXPECT_TRUE(changed_settings({{"optimizer.epsilon", "1e-08"}}, {{"optimizer.epsilon", "1.0e-08"}})
                  .empty());
  EXPECT_EQ(
      changed_settings({{"optimizer.epsilon", "1e-08"}}, {{"optimizer.epsilon", "1.0e-07"}}).size(),
      1U);
}

std::string changes_between(const ModelConfig& before, const ModelConfig& after) {
  std::string text;
  for (const SettingChange& change : changed_options(before, after)) {
    text += fmt::format("{}{}: {} -> {}\n", change.is_compatible ? "" : "not ", change.key,
                        change.before, change.after);
  }
  return text;
}

TEST(ChangedOptions, NameWhatMakesAnotherModelOfTheWeights) {
  ModelConfig before = ModelConfig::preset(Family::gpt2);
  ModelConfig after = before;
  after.dropout = 0.1;  // none of the weights
  EXPECT_EQ(changes_between(before, after), "");
  after.num_layers = 3;
  after.max_sequence_length = 77;
  after.norm_epsilon = 1e-6;
  after.tie_embeddings = false;
  EXPECT_EQ(changes_between(before, after),
            "not model.num_layers: 12 -> 3\nnot model.max_sequence_length: 1024 -> 77\n"
            "not model.norm_epsilon: 1e-05 -> 1e-06\nnot model.tie_embeddings: true -> false\n");
}

TEST(ChangedOptions, OfRopeAreToldAndALongerContextIsNoOtherModel) {
  ModelConfig before = ModelConfig::preset(Family::llama);
  ModelConfig after = before;
  after.max_sequence_length = 4096;
  after.rope.original_length = 4096;  // asked for by no scaling
  EXPECT_EQ(changes_between(before, after), "");
  after.rope.theta = 5e5;
  EXPECT_EQ(changes_between(before, after), "model.rope.theta: 10000.0 -> 500000.0\n");
  after.rope.theta = before.rope.theta;
  after.rope.scaling = RopeScaling::yarn;
  after.rope.factor = 4.0;
  after.rope.attention_factor = 1.5;
  const std::string there =
      "model.rope.scaling: none -> yarn\nmodel.rope.factor: 1.0 -> 4.0\n"
      "model.rope.original_length: 1024 -> 4096\nmodel.rope.attention_factor: unset -> 1.5\n";
  EXPECT_EQ(changes_between(before, after), there);
  EXPECT_EQ(
      changes_between(after, before),
      "model.rope.scaling: yarn -> none\nmodel.rope.factor: 4.0 -> 1.0\n"
      "model.rope.original_length: 4096 -> 1024\nmodel.rope.attention_factor: 1.5 -> unset\n");
}

}  // namespace
}  // namespace redspine
