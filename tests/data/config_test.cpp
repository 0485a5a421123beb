#include "data/config.h"

#include <gtest/gtest.h>

#include <limits>

namespace redspine {
namespace {

TEST(DataConfig, IsLegalWithOneFile) {
  Mistakes mistakes;
  DataConfig{.train = {{.path = "a"}}}.validate(mistakes);
  EXPECT_TRUE(mistakes.empty());
}

TEST(DataConfig, NeedsATrainingFile) {
  Mistakes mistakes;
  DataConfig{}.validate(mistakes);
  ASSERT_EQ(mistakes.all().size(), 1u);
  EXPECT_EQ(mistakes.all()[0].key, "data.train");
}

TEST(DataConfig, NamesEveryMistakeByItsFullKey) {
  Mistakes mistakes;
  const DataConfig config{.train = {{"a", 1.0},
                                    {"", 0.0},
                                    {"b", -1.0},
                                    {"c", std::numeric_limits<double>::infinity()},
                                    {"d", std::numeric_limits<double>::quiet_NaN()}},
                          .validation = {{"", -1.0}}};
  config.validate(mistakes);
  std::vector<std::string> keys;
  for (const Mistake& mistake : mistakes.all()) keys.push_back(mistake.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"data.train[1].path", "data.validation[0].path",
                                            "data.train[1].weight", "data.train[2].weight",
                                            "data.train[3].weight", "data.train[4].weight"}));
  EXPECT_EQ(mistakes.all()[3].text, "is -1; legal: a finite number above 0");
}

}  // namespace
}  // namespace redspine
