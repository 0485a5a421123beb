#include "trainer/checkpoint/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/io/folders.h"
#include "tests/support/model_files.h"
#include "tests/support/scratch.h"
#include "trainer/checkpoint/difference.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/verify.h"

namespace redspine::testing {
namespace {

class ConvertTest : public ::testing::Test {
 protected:
  std::string source() const { return scratch_ / "source"; }
  std::string output() const { return scratch_ / "output"; }
  ConversionReport convert(std::optional<ElementType> type = {}) const {
    return convert_model({.source = source(), .output = output(), .type = type});
  }
  std::string problem(std::optional<ElementType> type = {}) const {
    return config_error_of([&] { convert(type); });
  }
  /// Puts `value` at the beginning of the only f32 file's data.
  void set_first(float value) const {
    const std::string path = source() + "/model.safetensors";
    const std::size_t header = SafetensorsFile::open(path).header_bytes().size();
    std::string bytes = read_file(path);
    bytes.replace(header, sizeof(value), reinterpret_cast<const char*>(&value), sizeof(value));
    scratch_.write("source/model.safetensors", bytes);
  }

  Scratch scratch_;
};

TEST_F(ConvertTest, KeepsEveryBitOfEveryTypeFromOneFileOrSeveral) {
  int number = 0;
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      for (const int num_files : {1, 3}) {
        const std::string name = std::to_string(number++);
        const std::string from = scratch_ / ("from" + name);
        const std::string there = scratch_ / ("there" + name);
        const std::string back = scratch_ / ("back" + name);
        const TensorBytes written = write_model(
            from, {.config = small_model(family, 61), .type = type, .num_files = num_files});
        convert_model({.source = from, .output = there});
        convert_model({.source = there, .output = back});
        EXPECT_EQ(read_model_bytes(there), written);
        EXPECT_EQ(read_model_bytes(back), written);
        EXPECT_EQ(verify_checkpoint(back, Verification::full), std::vector<std::string>{});
      }
    }
  }
}

TEST_F(ConvertTest, GivesTheNamesOfTheFullModelAndLeavesMasksOut) {
  const TensorBytes written =
      write_model(source(), {.config = small_model(Family::gpt2, 61), .names = Names::of_the_hub});
  convert();
  EXPECT_EQ(read_model_bytes(output()), written);
}

TEST_F(ConvertTest, ThereAndBackThroughALargerTypeKeepsEveryBit) {
  const TensorBytes written =
      write_model(source(), {.config = small_model(Family::llama, 61), .type = ElementType::bf16});
  convert(ElementType::f32);
  EXPECT_NE(read_model_bytes(output()), written);
  EXPECT_TRUE(compare_directories(source(), output()).is_equal());
  convert_model({.source = output(), .output = scratch_ / "back", .type = ElementType::bf16});
  EXPECT_EQ(read_model_bytes(scratch_ / "back"), written);
}

TEST_F(ConvertTest, ConfigurationSaysTheTypeAndKeepsTheEndOfText) {
  write_model(source(), {.config = small_model(Family::gpt2, 61)});
  auto config = nlohmann::ordered_json::parse(read_file(source() + "/config.json"));
  config["eos_token_id"] = 60;
  scratch_.write("source/config.json", config.dump());
  convert(ElementType::f16);
  const auto converted = nlohmann::json::parse(read_file(output() + "/config.json"));
  EXPECT_EQ(converted["torch_dtype"], "float16");
  EXPECT_EQ(converted["eos_token_id"], 60);
  EXPECT_FALSE(converted.contains("bos_token_id"));
  EXPECT_EQ(model_to_json(read_model_config(output())), model_to_json(read_model_config(source())));
}

TEST_F(ConvertTest, CopiesWhatUsersOfTheModelNeedAndNothingElse) {
  write_model(source(), {.config = small_model(Family::gpt2, 61)});
  scratch_.write("source/generation_config.json", "{\"do_sample\": true}");
  scratch_.write("source/tokenizer.json", "{}");
  scratch_.write("source/optimizer.safetensors", "not ours to copy");
  scratch_.write("source/notes", "mine");
  const ConversionReport report = convert();
  EXPECT_EQ(report.copied, (std::vector<std::string>{"generation_config.json", "tokenizer.json"}));
  EXPECT_EQ(names_in(output()),
            (std::vector<std::string>{"config.json", "generation_config.json", "manifest.json",
                                      "model.safetensors", "tokenizer.json"}));
  EXPECT_EQ(read_file(output() + "/generation_config.json"), "{\"do_sample\": true}");
}

TEST_F(ConvertTest, TakesAnEmptyDirectoryAndRejectsAnyOther) {
  write_model(source(), {.config = small_model(Family::gpt2, 61)});
  std::filesystem::create_directory(output());
  convert();
  EXPECT_EQ(problem(),
            "--output: " + output() + ": is there already; legal: a new directory or an empty one");
}

TEST_F(ConvertTest, TwoOfOneOutputAreKeptApartAndWhatAKilledOneLeftIsRemoved) {
  write_model(source(), {.config = small_model(Family::gpt2, 61)});
  const std::string partial = output() + ".partial";
  std::filesystem::create_directory(partial);
  scratch_.write("output.partial/left", "by one that was killed");
  {
    File other = File::open_folder(partial);
    ASSERT_EQ(other.try_lock(), FileLock::taken);
    EXPECT_EQ(problem(), "--output: " + output() +
                             ": another process is writing it; legal: a name that no other job "
                             "writes to at the same time");
    EXPECT_TRUE(std::filesystem::exists(partial + "/left"));
  }
  convert();
  EXPECT_FALSE(std::filesystem::exists(output() + "/left"));
  EXPECT_FALSE(std::filesystem::exists(partial));
}

TEST_F(ConvertTest, ANumberThatIsNotFiniteIsNamedAndNothingIsLeft) {
  write_model(source(), {.config = small_model(Family::gpt2, 61)});
  set_first(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(problem(), source() +
                           "/model.safetensors: tensor transformer.wte.weight: element 0 is nan; "
                           "legal: finite numbers");
  EXPECT_EQ(names_in(scratch_ / ""), std::vector<std::string>{"source"});
}

TEST_F(ConvertTest, ANumberTooLargeForTheTypeIsNamedAndNothingIsLeft) {
  write_model(source(), {.config = small_model(Family::gpt2, 61)});
  set_first(70000.0F);
  EXPECT_EQ(problem(ElementType::f16),
            "--dtype: " + source() +
                "/model.safetensors: tensor transformer.wte.weight: element 0 is 70000, too large "
                "for F16");
  EXPECT_EQ(names_in(scratch_ / ""), std::vector<std::string>{"source"});
  convert(ElementType::bf16);
}

TEST_F(ConvertTest, TensorsThatDoNotFitTheConfigurationAreAllNamed) {
  write_model(source(), {.config = small_model(Family::gpt2, 61)});
  ModelConfig larger = small_model(Family::gpt2, 62);
  larger.num_layers = 3;
  scratch_.write("source/config.json", model_to_json(larger));
  const std::string text = problem();
  EXPECT_NE(text.find("tensor transformer.wte.weight: has the shape [61, 32]"), std::string::npos)
      << text;
  EXPECT_NE(text.find("tensor transformer.h.2.ln_1.weight of shape [32]: is missing"),
            std::string::npos)
      << text;
  EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(ConvertTest, WeightsThatAreAProgramAreRejectedWithTheWayOut) {
  write_model(source(), {.config = small_model(Family::gpt2, 61)});
  std::filesystem::rename(source() + "/model.safetensors", source() + "/pytorch_model.bin");
  EXPECT_NE(problem().find("safe_serialization=True"), std::string::npos) << problem();
  std::filesystem::remove(source() + "/pytorch_model.bin");
  EXPECT_EQ(problem(), source() + ": has no model.safetensors and no model.safetensors.index.json");
  std::filesystem::remove_all(source());
  EXPECT_EQ(problem(), source() + ": does not exist");
}

}  // namespace
}  // namespace redspine::testing
