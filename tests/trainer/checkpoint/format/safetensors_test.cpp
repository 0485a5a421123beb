#include "trainer/checkpoint/format/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tensor/error.h"
#include "tests/support/safetensors.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

std::string file_bytes(const std::string& json, std::size_t data_bytes) {
  return bytes_of<std::uint64_t>({json.size()}) + json + std::string(data_bytes, '\7');
}

std::string tensor(const std::string& name, const std::string& more) {
  return fmt::format("\"{}\":{{{}}}", name, more);
}

/// The header of these tensors.
std::string header(const std::string& tensors) { return fmt::format("{{{}}}", tensors); }

constexpr const char* kFourFloats = R"("dtype":"F32","shape":[2,2],"data_offsets":[0,16])";

TEST(Safetensors, WhatWasWrittenIsReadBack) {
  const Scratch scratch;
  const std::string path = scratch / "file.safetensors";
  const std::vector<float> a = {1.0F, -2.5F, 3e-40F, 4.0F, 5.0F, 6.0F};
  const std::vector<float> b = {7.0F};
  SafetensorsWriter writer(path, {{"a", ElementType::f32, {2, 3}},
                                  {"empty", ElementType::f32, {0, 4}},
                                  {"b", ElementType::f32, {}}});
  writer.write(std::as_bytes(std::span(a)));
  writer.write(std::as_bytes(std::span(b)));
  writer.finish();

  const SafetensorsFile file = SafetensorsFile::open(path);
  EXPECT_EQ(file.header_bytes(), writer.header_bytes());
  EXPECT_EQ(file.header().metadata.at("format"), "pt");
  ASSERT_NE(file.find("a"), nullptr);
  EXPECT_EQ(file.find("nothing"), nullptr);
  std::vector<float> part(3);
  file.read_floats(*file.find("a"), 2, part);
  EXPECT_EQ(part, (std::vector<float>{3e-40F, 4.0F, 5.0F}));
  EXPECT_EQ(file.find("b")->shape.size(), 0U);
  EXPECT_EQ(file.find("empty")->bytes(), 0);
  EXPECT_EQ(static_cast<std::size_t>(writer.file_bytes()), read_file(path).size());

  const testing::StoredTensors oracle = testing::read_safetensors(path);
  EXPECT_EQ(oracle.at("a").values, a);
  EXPECT_EQ(oracle.at("b").values, b);
}

TEST(Safetensors, HalvesAreReadAsF32) {
  const Scratch scratch;
  const std::string json =
      header(tensor("h", R"("dtype":"F16","shape":[2],"data_offsets":[0,4])") + "," +
             tensor("b", R"("dtype":"BF16","shape":[2],"data_offsets":[4,8])"));
  const std::string path =
      scratch.write("half.safetensors", bytes_of<std::uint64_t>({json.size()}) + json +
                                            bytes_of<std::uint16_t>({0x3C00, 0xC100}) +
                                            bytes_of<std::uint16_t>({0x3F80, 0xC020}));
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::vector<float> values(2);
  file.read_floats(*file.find("h"), 0, values);
  EXPECT_EQ(values, (std::vector<float>{1.0F, -2.5F}));
  file.read_floats(*file.find("b"), 0, values);
  EXPECT_EQ(values, (std::vector<float>{1.0F, -2.5F}));
}

struct Hostile {
  std::string name;
  std::string bytes;
  std::string error;  // part of it
};

std::vector<Hostile> hostile_files() {
  const auto one = [](const std::string& more, std::size_t data_bytes = 16) {
    return file_bytes(header(tensor("t", more)), data_bytes);
  };
  std::vector<Hostile> all = {
      {"empty file", "", "too few for a safetensors header"},
      {"half a length", std::string(7, '\0'), "too few"},
      {"length beyond the file", bytes_of<std::uint64_t>({1000}) + "{}", "legal: at most 2"},
      {"length of 2^63", bytes_of<std::uint64_t>({std::uint64_t{1} << 63}) + "{}", "legal"},
      {"length of 2^64 - 1", bytes_of<std::uint64_t>({~std::uint64_t{0}}) + "{}", "legal"},
      {"no header", bytes_of<std::uint64_t>({0}), "does not begin with {"},
      {"no JSON", file_bytes("{abc", 0), "is no JSON"},
      {"cut off", file_bytes("{\"t\":", 0), "is no JSON"},
      {"an array", file_bytes("[]", 0), "does not begin with {"},
      {"deep nesting", file_bytes("{\"t\":" + std::string(100000, '['), 0),
       "where it has no place"},
      {"objects all the way",
       file_bytes(
           [] {
             std::string deep;
             for (int i = 0; i < 50000; ++i) deep += "{\"t\":";
             return deep;
           }(),
           0),
       "has the key \"t\""},
      {"text after the header", file_bytes("{} {}", 0), "is no JSON"},
      {"name not UTF-8", file_bytes("{\"\xff\xfe\":{}}", 0), "is no JSON"},
      {"overlong UTF-8", file_bytes("{\"\xc0\xaf\":{}}", 0), "is no JSON"},
      {"empty name", file_bytes(header(tensor("", kFourFloats)), 16), "empty name"},
      {"the same name twice",
       file_bytes(header(tensor("t", kFourFloats) + "," +
                         tensor("t", R"("dtype":"F32","shape":[1],"data_offsets":[16,20])")),
                  20),
       "\"t\" is there twice"},
      {"the same name, escaped",
       file_bytes(header(tensor("t", kFourFloats) + "," + tensor("\\u0074", kFourFloats)), 16),
       "is there twice"},
      {"unknown dtype", one(R"("dtype":"F31","shape":[4],"data_offsets":[0,16])"),
       "dtype is \"F31\"; legal: BOOL"},
      {"dtype a number", one(R"("dtype":4,"shape":[4],"data_offsets":[0,16])"), "no place"},
      {"no dtype", one(R"("shape":[4],"data_offsets":[0,16])"), "is incomplete"},
      {"no offsets", one(R"("dtype":"F32","shape":[4])"), "is incomplete"},
      {"one offset", one(R"("dtype":"F32","shape":[4],"data_offsets":[16])"), "is incomplete"},
      {"three offsets", one(R"("dtype":"F32","shape":[4],"data_offsets":[0,16,16])"),
       "more than 2"},
      {"a key twice", one(R"("dtype":"F32","dtype":"F32","shape":[4],"data_offsets":[0,16])"),
       "twice"},
      {"an unknown key", one(R"("dtype":"F32","shape":[4],"data_offsets":[0,16],"x":1)"),
       "legal: dtype, shape, data_offsets"},
      {"negative dim", one(R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])"), "-4"},
      {"fractional dim", one(R"("dtype":"F32","shape":[4.5],"data_offsets":[0,16])"), "4.5"},
      {"nine dims", one(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,16])"),
       "more than 8"},
      {"dims beyond 2^63",
       one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0), "2^63"},
      {"a dim beyond 2^63",
       one(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,0])", 0), "2^63"},
      {"dims that overflow to the right size",
       one(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])", 0), "2^63"},
      {"shape smaller than offsets", one(R"("dtype":"F32","shape":[3],"data_offsets":[0,16])"),
       "takes 12 bytes"},
      {"backwards", one(R"("dtype":"F32","shape":[4],"data_offsets":[16,0])"), "end before"},
      {"beyond the file", one(R"("dtype":"F32","shape":[4],"data_offsets":[16,32])"),
       "has 16 bytes of data"},
      {"data after the tensors", one(kFourFloats, 17), "the tensors end at byte 16"},
      {"gap before", one(R"("dtype":"F32","shape":[3],"data_offsets":[4,16])"), "a gap"},
      {"null", file_bytes("{\"t\":null}", 0), "null"},
      {"metadata of numbers", file_bytes("{\"__metadata__\":{\"a\":1}}", 0), "no place"}};
  all.push_back(
      {"overlap",
       file_bytes(header(tensor("a", R"("dtype":"F32","shape":[4],"data_offsets":[0,16])") + "," +
                         tensor("b", R"("dtype":"F32","shape":[4],"data_offsets":[8,24])")),
                  24),
       "overlapping"});
  return all;
}

TEST(Safetensors, EveryHostileFileIsAnErrorThatNamesIt) {
  const Scratch scratch;
  for (const Hostile& hostile : hostile_files()) {
    const std::string path = scratch.write("hostile.safetensors", hostile.bytes);
    const std::string error = config_error_of([&] { SafetensorsFile::open(path); });
    EXPECT_NE(error.find(hostile.error), std::string::npos) << hostile.name << ": " << error;
    EXPECT_TRUE(error.starts_with(path)) << hostile.name << ": " << error;
  }
}

// Each byte of a good header, flipped in each of its bits: an error, or a header that is as good.
TEST(Safetensors, NoFlippedBitOfAHeaderDoesHarm) {
  const Scratch scratch;
  const std::string good =
      file_bytes("{\"__metadata__\":{\"format\":\"pt\"}," + tensor("t", kFourFloats) + "}", 16);
  int num_rejected = 0;
  for (std::size_t byte = 0; byte + 16 < good.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << bit));
      try {
        const SafetensorsFile file =
            SafetensorsFile::open(scratch.write("flipped.safetensors", bytes));
        for (const SafetensorsEntry& entry : file.header().entries) {
          std::vector<std::byte> data(static_cast<std::size_t>(entry.bytes()));
          file.read_bytes(entry, 0, data);
        }
      } catch (const ConfigError&) {
        ++num_rejected;
      }
    }
  }
  EXPECT_GT(num_rejected, 400);
}

TEST(Safetensors, AFileThatIsMissingOrAFolderIsNamed) {
  const Scratch scratch;
  EXPECT_NE(config_error_of([&] { SafetensorsFile::open(scratch / "none"); }).find("none"),
            std::string::npos);
  EXPECT_NE(config_error_of([&] { SafetensorsFile::open(scratch / ""); }).find("regular file"),
            std::string::npos);
}

TEST(Safetensors, IntegersAreNoReals) {
  const Scratch scratch;
  const std::string path = scratch.write(
      "ints.safetensors",
      file_bytes(header(tensor("t", R"("dtype":"I64","shape":[2],"data_offsets":[0,16])")), 16));
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::vector<float> values(2);
  const std::string error = config_error_of([&] { file.read_floats(*file.find("t"), 0, values); });
  EXPECT_NE(error.find("tensor t: is I64; legal: F32, F16, BF16"), std::string::npos) << error;
}

}  // namespace
}  // namespace redspine
