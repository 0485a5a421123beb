#include "launch/config/nearest.h"

#include <gtest/gtest.h>

namespace redspine {
namespace {

TEST(Nearest, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("tarin", "train"), 1);
  EXPECT_EQ(edit_distance("num_layer", "num_layers"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest_word("trian", {"tokenize", "train"}), "; nearest: train");
  EXPECT_EQ(nearest_word("tokenise", {"tokenize", "train"}), "; nearest: tokenize");
}

TEST(Nearest, FindsARightNameInAWrongSection) {
  const std::vector<std::string> known = {"train.steps", "optimizer.learning_rate", "train"};
  EXPECT_EQ(nearest_key("train.learning_rate", known), "; nearest: optimizer.learning_rate");
  EXPECT_EQ(nearest_key("train.step", known), "; nearest: train.steps");
  EXPECT_EQ(nearest_key("trian", known), "; nearest: train");
  EXPECT_EQ(nearest_key("trian.steps", known), "; nearest: train.steps");
}

TEST(Nearest, FindsHalfAName) {
  const std::vector<std::string> known = {"schedule.warmup_steps", "model.num_layers"};
  EXPECT_EQ(nearest_key("schedule.warmup", known), "; nearest: schedule.warmup_steps");
  EXPECT_EQ(nearest_key("model.layers", known), "; nearest: model.num_layers");
}

TEST(Nearest, AWordThatNobodyMeantIsNotNamed) {
  EXPECT_EQ(nearest_word("serve", {"train", "tokenize", "sample"}), "");
  EXPECT_EQ(nearest_word("", {"train"}), "");
  EXPECT_EQ(nearest_word(std::string(3'000'000, 'x'), {"train"}), "");
  const std::vector<std::string> known = {"model.num_heads", "run.seed", "train"};
  EXPECT_EQ(nearest_key("run.hang_seconds", known), "");
  EXPECT_EQ(nearest_key("zero_optimization", known), "");
  EXPECT_EQ(nearest_key("run.", known), "");
}

}  // namespace
}  // namespace redspine
