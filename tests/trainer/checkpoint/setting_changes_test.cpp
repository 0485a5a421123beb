#include "trainer/checkpoint/setting_changes.h"

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

}  // namespace
}  // namespace redspine
