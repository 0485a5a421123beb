#include "launch/nearest.h"

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
  EXPECT_EQ(nearest_word("trian", {"tokenize", "train"}), "train");
  EXPECT_EQ(nearest_word("tokenise", {"tokenize", "train"}), "tokenize");
}

TEST(Nearest, FindsARightNameInAWrongSection) {
  const std::vector<std::string> known = {"train.steps", "optimizer.learning_rate", "train"};
  EXPECT_EQ(nearest_key("train.learning_rate", known), "optimizer.learning_rate");
  EXPECT_EQ(nearest_key("train.step", known), "train.steps");
  EXPECT_EQ(nearest_key("trian", known), "train");
}

}  // namespace
}  // namespace redspine
