// Token files that cannot be trained on, found when a job starts.

#include <gtest/gtest.h>

#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

constexpr const char* kKey = "config.yaml:13:18: data.train[0].path: ";

/// Trains on `file` in `format`, as the scene's maker left it.
void train_on(const Scene& scene, std::string_view file, std::string_view format) {
  scene.edit("train.u16", file);
  scene.edit("format: raw_u16", "format: " + std::string(format));
  scene.edit("[{path: validation.u16}]", "[]");
  scene.edit("eval_interval: 2", "eval_interval: 0");
}

/// A problem in the bytes of a file.
std::function<void(const Scene&)> file(const char* name, const char* format,
                                       const std::string& bytes) {
  return [=](const Scene& scene) {
    train_on(scene, name, format);
    scene.write(name, bytes);
  };
}

template <class Id>
std::string ids(std::size_t count, std::size_t place, Id id) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += bytes_of(i == place ? id : Id{1});
  return bytes;
}

std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t num_tokens) {
  const std::string header = bytes_of(magic) + bytes_of(version) + bytes_of(num_tokens);
  return header + std::string(1024 - header.size(), '\0') + ids<std::uint16_t>(1000, 0, 1);
}

struct Megatron {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  std::int32_t num_tokens = 1000;
  std::size_t num_index_bytes_lost = 0;
  std::string bin = ids<std::int32_t>(1000, 0, 1);
};

/// One document of i32 ids.
std::function<void(const Scene&)> megatron(const Megatron& pair) {
  return [=](const Scene& scene) {
    train_on(scene, "pair", "megatron");
    std::string index = pair.magic + bytes_of(std::uint64_t{1}) + bytes_of(std::uint8_t{4}) +
                        bytes_of(std::uint64_t{1}) + bytes_of(std::uint64_t{2}) +
                        bytes_of(pair.num_tokens) + bytes_of(std::int64_t{0}) +
                        bytes_of(std::int64_t{0}) + bytes_of(std::int64_t{1});
    index.resize(index.size() - pair.num_index_bytes_lost);
    scene.write("pair.idx", index);
    scene.write("pair.bin", pair.bin);
  };
}

const std::vector<BadCase>& problems_of_form() {
  static const std::vector<BadCase> kAll = {
      {.name = "MissingFile",
       .make = [](const Scene& scene) { train_on(scene, "nowhere", "auto"); },
       .lines = {std::string(kKey) + "nowhere: does not exist and as a glob matches nothing; "
                                     "looked for a file of that name and the pair nowhere.bin and "
                                     "nowhere.idx"},
       .ranks = {1, 2, 4}},
      {.name = "MissingHalfOfAPair",
       .make =
           [](const Scene& scene) {
             megatron({})(scene);
             std::filesystem::remove(scene.path("pair.bin"));
           },
       .lines = {std::string(kKey) + "pair.bin: cannot be opened: No such file or directory"}},
      {.name = "Folder",
       .make =
           [](const Scene& scene) {
             train_on(scene, "folder", "raw_u16");
             create_directory(scene.path("folder"));
           },
       .lines = {std::string(kKey) + "folder: is not a regular file"}},
      {.name = "EmptyFile",
       .make = file("empty", "raw_u16", ""),
       .lines = {std::string(kKey) + "empty: is 0 bytes; legal for this data.format: a multiple of "
                                     "2, above 0"},
       .ranks = {1, 2, 4}},
      {.name = "EmptyFileForLlmc",
       .make = file("empty", "llmc", ""),
       .lines = {std::string(kKey) + "empty: is 0 bytes; llm.c's header alone is 1024"}},
      {.name = "OddSizedFile",
       .make = file("odd", "raw_u16", std::string(4001, '\1')),
       .lines = {std::string(kKey) + "odd: is 4001 bytes; legal for this data.format: a multiple "
                                     "of 2, above 0"}},
      {.name = "OddSizedFileOf32Bits",
       .make = file("odd", "raw_u32", std::string(4002, '\0')),
       .lines = {std::string(kKey) + "odd: is 4002 bytes; legal for this data.format: a multiple "
                                     "of 4, above 0"}},
      {.name = "WrongMagicOfLlmc",
       .make = file("tokens", "llmc", llmc(20240519, 1, 1000)),
       .lines = {std::string(kKey) + "tokens: has magic number 20240519; legal for llm.c: 20240520 "
                                     "(u16), 20240801 (u32); *"},
       .ranks = {1, 2, 4}},
      {.name = "WrongVersionOfLlmc",
       .make = file("tokens", "llmc", llmc(20240520, 2, 1000)),
       .lines = {std::string(kKey) + "tokens: is of version 2; legal with magic number 20240520: "
                                     "1"}},
      {.name = "TruncatedLlmcFile",
       .make = file("tokens", "llmc", llmc(20240520, 1, 1001)),
       .lines = {std::string(kKey) + "tokens: is 3024 bytes, but its header says 1001 tokens, "
                                     "which take 1024 + 2 x 1001"}},
      {.name = "WrongMagicOfMegatron",
       .make = megatron({.magic = "NOINDEX!!"}),
       .lines = {std::string(kKey) + "pair.idx: begins with 4e 4f 49 4e 44 45 58 21 21; a Megatron "
                                     "index begins with MMIDIDX and two zero bytes"}},
      {.name = "TruncatedMegatronIndex",
       .make = megatron({.num_index_bytes_lost = 3}),
       .lines = {std::string(kKey) + "pair.idx: is 59 bytes, but its header says 1 sequence and "
                                     "2 document indices, *"}},
      {.name = "TruncatedMegatronTokens",
       .make = megatron({.bin = ids<std::int32_t>(999, 0, 1)}),
       .lines = {std::string(kKey) + "pair.bin: is 3996 bytes, but pair.idx puts *of 1000 tokens*"},
       .ranks = {1, 2, 4}},
      {.name = "TwoBadFiles",
       .make =
           [](const Scene& scene) {
             scene.edit("[{path: train.u16}]", "[{path: nowhere}, {path: odd}]");
             scene.write("odd", "123");
           },
       .lines = {"config.yaml:13:18: data.train[0].path: nowhere: does not exist *",
                 "config.yaml:13:35: data.train[1].path: odd: is 3 bytes; *"}},
  };
  return kAll;
}

const std::vector<BadCase>& problems_of_content() {
  static const std::vector<BadCase> kAll = {
      {.name = "IdOfTheVocabularySize",
       .make = file("tokens", "raw_u16", ids<std::uint16_t>(1000, 999, 257)),
       .lines = {std::string(kKey) + "tokens: token 999 has id 257; legal with model.vocab_size "
                                     "257: 0 to 256"},
       .ranks = {1, 2, 4}},
      {.name = "IdThatIsNegativeIn32Bits",
       .make = file("tokens", "raw_u32", ids<std::uint32_t>(1000, 0, 0xffffffff)),
       .lines = {std::string(kKey) + "tokens: token 0 has id 4294967295; legal *: 0 to 256"}},
      {.name = "NegativeId",
       .make = megatron({.bin = ids<std::int32_t>(1000, 77, -1)}),
       .lines = {std::string(kKey) + "pair.bin: token 77 has id -1; legal *: 0 to 256"}},
      {.name = "IdInTheValidationData",
       .make =
           [](const Scene& scene) {
             scene.write("validation.u16", ids<std::uint16_t>(1000, 500, 300));
           },
       .lines = {"config.yaml:14:23: data.validation[0].path: validation.u16: token 500 has id "
                 "300; legal *: 0 to 256"}},
      {.name = "TooFewTokensForASample",
       .make = file("tokens", "raw_u16", ids<std::uint16_t>(32, 0, 1)),
       .lines = {std::string(kKey) + "tokens: has 32 tokens; one sample of batch.sequence_length "
                                     "32 needs 33"}},
      {.name = "TooFewTokensForAStep",
       .make = file("tokens", "raw_u16", ids<std::uint16_t>(256, 0, 1)),
       .lines = {"config.yaml:13:10: data.train: has 7 samples of 33 tokens; one step of "
                 "batch.global_batch_size needs 8, that is, 257 tokens of one file"},
       .ranks = {1, 2, 4}},
      // 1.5 billion parameters: had anything been allocated before, the peak of memory would show.
      {.name = "IdUnderALargeModel",
       .make =
           [](const Scene& scene) {
             file("tokens", "raw_u16", ids<std::uint16_t>(10000, 9999, 50257))(scene);
             scene.edit("num_layers: 2", "num_layers: 48");
             scene.edit("hidden_size: 32", "hidden_size: 1600");
             scene.edit("num_heads: 4\n  num_kv_heads: 4\n", "num_heads: 25\n");
             scene.edit("vocab_size: 257", "vocab_size: 50257");
             scene.edit("max_sequence_length: 32", "max_sequence_length: 1024");
           },
       .lines = {"config.yaml:12:18: data.train[0].path: tokens: token 9999 has id 50257; legal *"},
       .ranks = {1, 2, 4}},
  };
  return kAll;
}

class BadData : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadData, IsToldByOneRankAndEndsAllWithNothingTouched) { expect_rejected(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Form, BadData, ::testing::ValuesIn(problems_of_form()), name_of);
INSTANTIATE_TEST_SUITE_P(Content, BadData, ::testing::ValuesIn(problems_of_content()), name_of);

}  // namespace
}  // namespace redspine::testing
