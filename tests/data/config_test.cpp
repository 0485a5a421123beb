#include "data/config.h"

#include <gtest/gtest.h>

#include <limits>

namespace redspine {
namespace {

TEST(DataConfig, IsLegalWithOneFile) {
  ConfigProblems problems;
  DataConfig{.train = {{.path = "a"}}}.validate(problems);
  EXPECT_TRUE(problems.empty());
}

TEST(DataConfig, NeedsATrainingFile) {
  ConfigProblems problems;
  DataConfig{}.validate(problems);
  ASSERT_EQ(problems.all().size(), 1u);
  EXPECT_EQ(problems.all()[0].key, "data.train");
}

TEST(DataConfig, NamesEveryProblemByItsFullKey) {
  ConfigProblems problems;
  const DataConfig config{.train = {{"a", 1.0},
                                    {"", 0.0},
                                    {"b", -1.0},
                                    {"c", std::numeric_limits<double>::infinity()},
                                    {"d", std::numeric_limits<double>::quiet_NaN()}},
                          .validation = {{"", -1.0}}};
  config.validate(problems);
  std::vector<std::string> keys;
  for (const ConfigProblem& problem : problems.all()) keys.push_back(problem.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"data.train[1].path", "data.validation[0].path",
                                            "data.train[1].weight", "data.train[2].weight",
                                            "data.train[3].weight", "data.train[4].weight"}));
  EXPECT_EQ(problems.all()[3].text, "is -1; legal: a finite number above 0");
}

}  // namespace
}  // namespace redspine
