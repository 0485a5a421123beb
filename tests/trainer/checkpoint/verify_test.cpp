#include "trainer/checkpoint/verify.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/io/folders.h"
#include "tests/support/scratch.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/safetensors.h"

namespace redspine {
namespace {

// A checkpoint of two tensors in one file.
class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    SafetensorsWriter writer(scratch_ / kModel,
                             {{"a", ElementType::f32, {4}}, {"b", ElementType::f32, {2}}});
    writer.write(std::as_bytes(std::span(values)));
    writer.finish();
    write_text(scratch_ / "config.json", "{}");
    const auto hash = [&](std::size_t first, std::size_t count) {
      return hash_text({reinterpret_cast<const char*>(values.data() + first), count * 4});
    };
    Manifest manifest;
    manifest.files[kModel] = {.bytes = writer.file_bytes(),
                              .hash = hash_text(writer.header_bytes()),
                              .tensors = {{"a", hash(0, 4)}, {"b", hash(4, 2)}}};
    manifest.files["config.json"] = {.bytes = 2, .hash = hash_text("{}"), .tensors = {}};
    write_text(scratch_ / kManifestName, manifest_to_json(manifest));
  }

  std::vector<std::string> problems(Verification verification = Verification::full) const {
    return verify_checkpoint(scratch_ / "", verification);
  }
  void flip(const std::string& name, std::size_t byte) const {
    std::string bytes = read_file(scratch_ / name);
    bytes[byte] = static_cast<char>(bytes[byte] ^ 4);
    scratch_.write(name, bytes);
  }

  static constexpr const char* kModel = "model-00001-of-00001.safetensors";
  Scratch scratch_;
};

TEST_F(VerifyTest, AGoodCheckpointHasNoProblems) { EXPECT_EQ(problems().size(), 0U); }

TEST_F(VerifyTest, EveryFlippedBitOfEveryFileIsFound) {
  for (const std::string& name :
       {std::string(kModel), std::string("config.json"), std::string(kManifestName)}) {
    const std::string good = read_file(scratch_ / name);
    for (std::size_t byte = 0; byte < good.size(); ++byte) {
      // Space between the words of a manifest means nothing.
      if (name == kManifestName && (good[byte] == ' ' || good[byte] == '\n')) continue;
      flip(name, byte);
      EXPECT_FALSE(problems().empty()) << name << " byte " << byte << " " << good[byte];
      scratch_.write(name, good);
    }
  }
}

TEST_F(VerifyTest, ADamagedTensorIsNamedWithItsFile) {
  flip(kModel, read_file(scratch_ / kModel).size() - 1);
  ASSERT_EQ(problems().size(), 1U);
  EXPECT_EQ(problems()[0],
            scratch_ / (std::string("/") + kModel) + ": tensor b: differs from what was written");
  EXPECT_TRUE(problems(Verification::sizes).empty());
}

TEST_F(VerifyTest, EachShareLooksAtItsOwnTensorsAndAllLookAtAll) {
  flip(kModel, read_file(scratch_ / kModel).size() - 1);
  int num_found = 0;
  for (int index = 0; index < 3; ++index) {
    num_found += static_cast<int>(
        verify_checkpoint(scratch_ / "", Verification::full, {.index = index, .count = 3}).size());
  }
  EXPECT_EQ(num_found, 1);
}

TEST_F(VerifyTest, MissingEmptiedAndCutFilesAreFound) {
  for (const std::string& name :
       {std::string(kModel), std::string("config.json"), std::string(kManifestName)}) {
    const std::string good = read_file(scratch_ / name);
    scratch_.write(name, "");
    EXPECT_FALSE(problems().empty()) << name;
    EXPECT_FALSE(problems(Verification::sizes).empty()) << name;
    scratch_.write(name, good.substr(0, good.size() - 1));
    EXPECT_FALSE(name != kManifestName && problems(Verification::sizes).empty()) << name;
    std::filesystem::remove(scratch_ / name);
    EXPECT_FALSE(problems(Verification::sizes).empty()) << name;
    scratch_.write(name, good);
  }
  EXPECT_TRUE(problems().empty());
}

}  // namespace
}  // namespace redspine
