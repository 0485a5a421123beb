#include "trainer/checkpoint/difference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "tests/support/model_files.h"
#include "tests/support/scratch.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/format/safetensors.h"

namespace redspine::testing {
namespace {

class DifferenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_model(scratch_ / "a", {.config = small_model(Family::gpt2, 61)});
    write_model(scratch_ / "b", {.config = small_model(Family::gpt2, 61), .num_files = 3});
  }

  DirectoryDifference compare() const {
    return compare_directories(scratch_ / "a", scratch_ / "b");
  }
  /// Changes one element of a tensor of "a".
  void set(const std::string& name, std::int64_t element, float value) const {
    const std::string path = scratch_ / "a/model.safetensors";
    const SafetensorsFile file = SafetensorsFile::open(path);
    const auto offset =
        file.header_bytes().size() + static_cast<std::size_t>(file.find(name)->begin + element * 4);
    std::string bytes = read_file(path);
    bytes.replace(offset, sizeof(value), reinterpret_cast<const char*>(&value), sizeof(value));
    scratch_.write("a/model.safetensors", bytes);
  }
  static const TensorDifference& find(const DirectoryDifference& difference,
                                      const std::string& name) {
    return *std::find_if(difference.tensors.begin(), difference.tensors.end(),
                         [&](const TensorDifference& tensor) { return tensor.name == name; });
  }

  Scratch scratch_;
};

TEST_F(DifferenceTest, FilesDoNotMatter) {
  const DirectoryDifference difference = compare();
  EXPECT_TRUE(difference.is_equal());
  EXPECT_EQ(difference.tensors.size(), 28U);
  EXPECT_EQ(difference.tensors.front().name, "transformer.wte.weight");
}

TEST_F(DifferenceTest, OneElementIsFoundWithItsSize) {
  // All others are below 1/8.
  for (std::int64_t i = 0; i < 32; ++i) set("transformer.ln_f.weight", i, 4.0F);
  set("transformer.ln_f.weight", 31, 5.0F);
  const DirectoryDifference difference = compare();
  EXPECT_FALSE(difference.is_equal());
  const TensorDifference& tensor = find(difference, "transformer.ln_f.weight");
  EXPECT_NEAR(tensor.max_absolute, 5.0, 0.125);
  EXPECT_DOUBLE_EQ(tensor.max_relative, tensor.max_absolute / 5.0);
  EXPECT_EQ(std::count_if(difference.tensors.begin(), difference.tensors.end(),
                          [](const TensorDifference& t) { return t.relation != Relation::equal; }),
            1);
}

TEST_F(DifferenceTest, ANumberThatIsNotFiniteIsInfinitelyFar) {
  set("transformer.wpe.weight", 3, std::numeric_limits<float>::quiet_NaN());
  const TensorDifference tensor = find(compare(), "transformer.wpe.weight");
  EXPECT_EQ(tensor.relation, Relation::different);
  EXPECT_EQ(tensor.max_absolute, std::numeric_limits<double>::infinity());
}

TEST_F(DifferenceTest, ASettingOfTheModelIsADifferenceToo) {
  ModelConfig other = small_model(Family::gpt2, 61);
  other.norm_epsilon = 1e-3;
  scratch_.write("a/config.json", model_to_json(other));
  const DirectoryDifference difference = compare();
  EXPECT_FALSE(difference.is_equal());
  EXPECT_EQ(difference.settings,
            (std::vector<std::string>{"config.json of the first: \"layer_norm_epsilon\": 0.001",
                                      "config.json of the second: \"layer_norm_epsilon\": 1e-05"}));
}

TEST_F(DifferenceTest, AnotherModelDiffersInShapesAndNames) {
  ModelConfig other = small_model(Family::gpt2, 62);
  other.num_layers = 1;
  std::filesystem::remove_all(scratch_ / "a");
  write_model(scratch_ / "a", {.config = other});
  const DirectoryDifference difference = compare();
  EXPECT_FALSE(difference.is_equal());
  EXPECT_EQ(find(difference, "transformer.wte.weight").relation, Relation::other_shape);
  EXPECT_EQ(find(difference, "transformer.h.1.ln_1.bias").relation, Relation::only_second);
}

}  // namespace
}  // namespace redspine::testing
