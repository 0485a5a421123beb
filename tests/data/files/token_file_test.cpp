#include "data/files/token_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

constexpr std::int64_t kAnyVocab = std::int64_t{1} << 31;

TokenFile open(const std::string& path, TokenFormat format) {
  return TokenFile::open(path, format, "data.train[0].path");
}

std::vector<std::int32_t> read_all(const TokenFile& file, std::int64_t vocab_size = kAnyVocab) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.num_tokens()));
  file.read(0, tokens, vocab_size);
  return tokens;
}

/// The message when `path` is opened, without the key that begins it.
std::string open_error(const std::string& path, TokenFormat format) {
  const std::string message = config_error_of([&] { open(path, format); });
  const std::string key = "data.train[0].path: ";
  EXPECT_EQ(message.substr(0, key.size()), key);
  return message.size() < key.size() ? message : message.substr(key.size());
}

/// Writes NAME.bin and NAME.idx; returns the prefix.
std::string write_pair(const Scratch& scratch, const std::string& name, const MegatronIndex& index,
                       std::string_view tokens) {
  scratch.write(name + ".idx", index.bytes());
  scratch.write(name + ".bin", tokens);
  return scratch / name;
}

template <typename T>
void expect_megatron_round_trip(std::uint8_t code, const std::vector<T>& ids) {
  const Scratch scratch;
  const MegatronIndex index{.type_code = code,
                            .token_size = sizeof(T),
                            .lengths = {1, static_cast<std::int32_t>(ids.size()) - 1}};
  const std::string prefix = write_pair(scratch, "pair", index, bytes_of(ids));
  const TokenFile file = open(prefix, TokenFormat::megatron);
  EXPECT_EQ(file.num_documents(), 2);
  EXPECT_EQ(file.path(), prefix + ".bin");
  EXPECT_EQ(read_all(file), std::vector<std::int32_t>(ids.begin(), ids.end())) << "code " << +code;
}

TEST(TokenFile, ReadsMegatronPairsOfEveryIntegerType) {
  expect_megatron_round_trip<std::uint8_t>(1, {0, 1, 128, 255});
  expect_megatron_round_trip<std::int8_t>(2, {0, 1, 127});
  expect_megatron_round_trip<std::int16_t>(3, {0, 1, 32767});
  expect_megatron_round_trip<std::int32_t>(4, {0, 1, 50256, 2147483647});
  expect_megatron_round_trip<std::int64_t>(5, {0, 1, 50256, 2147483647});
  expect_megatron_round_trip<std::uint16_t>(8, {0, 1, 50256, 65535});
}

TEST(TokenFile, ReadsLlmcFilesOfBothKinds) {
  const Scratch scratch;
  const std::string gpt2 =
      scratch.write("a.bin", llmc_bytes<std::uint16_t>(20240520, 1, {5, 50256, 65535}));
  const std::string llama3 =
      scratch.write("b.bin", llmc_bytes<std::uint32_t>(20240801, 7, {5, 128000, 2147483647}));
  for (const TokenFormat format : {TokenFormat::llmc, TokenFormat::automatic}) {
    EXPECT_EQ(read_all(open(gpt2, format)), (std::vector<std::int32_t>{5, 50256, 65535}));
    EXPECT_EQ(read_all(open(llama3, format)), (std::vector<std::int32_t>{5, 128000, 2147483647}));
  }
}

TEST(TokenFile, ReadsHeaderlessFiles) {
  const Scratch scratch;
  const std::string u16 = scratch.write("u16", bytes_of<std::uint16_t>({7, 65535}));
  const std::string u32 = scratch.write("u32", bytes_of<std::uint32_t>({7, 65536}));
  EXPECT_EQ(read_all(open(u16, TokenFormat::raw_u16)), (std::vector<std::int32_t>{7, 65535}));
  EXPECT_EQ(read_all(open(u32, TokenFormat::raw_u32)), (std::vector<std::int32_t>{7, 65536}));
}

TEST(TokenFile, ReadsFromAnyOffset) {
  const Scratch scratch;
  const TokenFile file =
      open(scratch.write("a.bin", llmc_bytes(20240520, 1, counting(100))), TokenFormat::automatic);
  for (std::int64_t offset = 0; offset < 97; ++offset) {
    std::vector<std::int32_t> tokens(3);
    file.read(offset, tokens, 100);
    EXPECT_EQ(tokens[0], offset);
    EXPECT_EQ(tokens[2], offset + 2);
  }
}

TEST(TokenFile, FindsTheFormatOfAPairByItself) {
  const Scratch scratch;
  const std::string prefix =
      write_pair(scratch, "pair", {.lengths = {3}}, bytes_of<std::uint16_t>({1, 2, 3}));
  EXPECT_EQ(read_all(open(prefix, TokenFormat::automatic)), (std::vector<std::int32_t>{1, 2, 3}));
}

TEST(TokenFile, ReadsBeyondTwoToThe31TokensRight) {
  // Holes take no space: 4 GiB of zeros, marked around the places where 32 bits end.
  const Scratch scratch;
  constexpr std::int64_t kNumTokens = (std::int64_t{1} << 31) + 1000;
  const std::vector<std::int64_t> marked = {0, (std::int64_t{1} << 30) + 3,
                                            (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31,
                                            kNumTokens - 1};
  const std::string path = scratch / "big.bin";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  if (::ftruncate(descriptor, kNumTokens * 2) != 0) {
    const int error = errno;
    ::close(descriptor);
    ASSERT_EQ(error, EFBIG) << std::strerror(error);
    GTEST_SKIP() << "the file system of " << path
                 << " has no files of 4 GiB: set TMPDIR to another";
  }
  for (std::size_t i = 0; i < marked.size(); ++i) {
    const auto id = static_cast<std::uint16_t>(i + 1);
    ASSERT_EQ(::pwrite(descriptor, &id, 2, marked[i] * 2), 2);
  }
  ::close(descriptor);
  scratch.write("big.idx", MegatronIndex{.lengths = {2147483647, 1001}}.bytes());

  const TokenFile raw = open(path, TokenFormat::raw_u16);
  const TokenFile pair = open(scratch / "big", TokenFormat::automatic);
  for (const TokenFile* file : {&raw, &pair}) {
    EXPECT_EQ(file->num_tokens(), kNumTokens);
    for (std::size_t i = 0; i < marked.size(); ++i) {
      std::vector<std::int32_t> token(1);
      file->read(marked[i], token, 100);
      EXPECT_EQ(token[0], static_cast<std::int32_t>(i + 1)) << "offset " << marked[i];
    }
  }
}

TEST(TokenFile, NamesAnIdOutsideTheVocabulary) {
  const Scratch scratch;
  const std::string path = scratch.write("ids", bytes_of<std::uint16_t>({0, 256, 257, 3, 300}));
  const TokenFile file = open(path, TokenFormat::raw_u16);
  EXPECT_EQ(config_error_of([&] { read_all(file, 257); }),
            "data.train[0].path: " + path +
                ": token 2 has id 257; legal with model.vocab_size 257: 0 to 256");
  std::vector<std::int32_t> tokens(2);
  EXPECT_EQ(config_error_of([&] { file.read(3, tokens, 257); }),
            "data.train[0].path: " + path +
                ": token 4 has id 300; legal with model.vocab_size 257: 0 to 256");
  EXPECT_NO_THROW(read_all(file, 301));
}

TEST(TokenFile, NeitherWrapsNorClampsAnIdThatDoesNotFit) {
  const Scratch scratch;
  const auto expect_named = [&](const std::string& bytes, std::uint8_t code, int token_size,
                                const std::string& id) {
    const MegatronIndex index{.type_code = code, .token_size = token_size, .lengths = {2}};
    const TokenFile file = open(write_pair(scratch, "p", index, bytes), TokenFormat::megatron);
    const std::string message = config_error_of([&] { read_all(file); });
    EXPECT_NE(message.find("token 1 has id " + id + "; legal"), std::string::npos) << message;
  };
  expect_named(bytes_of<std::int8_t>({0, -1}), 2, 1, "-1");
  expect_named(bytes_of<std::int16_t>({0, -32768}), 3, 2, "-32768");
  expect_named(bytes_of<std::int32_t>({0, -5}), 4, 4, "-5");
  expect_named(bytes_of<std::int64_t>({0, -1}), 5, 8, "-1");
  expect_named(bytes_of<std::int64_t>({0, (std::int64_t{1} << 32) + 7}), 5, 8, "4294967303");
  expect_named(bytes_of<std::int64_t>({0, std::int64_t{1} << 31}), 5, 8, "2147483648");

  const std::string raw = scratch.write("raw", bytes_of<std::uint32_t>({0, 0xFFFFFFFFu}));
  const TokenFile file = open(raw, TokenFormat::raw_u32);
  const std::string message = config_error_of([&] { read_all(file); });
  EXPECT_NE(message.find("token 1 has id 4294967295; legal"), std::string::npos) << message;
}

TEST(TokenFile, NamesAFileThatWasCutShortDuringTheRun) {
  const Scratch scratch;
  const std::string path = scratch.write("ids", bytes_of(counting(50000)));
  const TokenFile file = open(path, TokenFormat::raw_u16);
  std::filesystem::resize_file(path, 40000);
  std::vector<std::int32_t> tokens(10);
  EXPECT_NO_THROW(file.read(19990, tokens, kAnyVocab));
  const std::string message = error_of([&] { file.read(19991, tokens, kAnyVocab); });
  EXPECT_NE(message.find(path + ": was 100000 bytes when it was opened and is 40000 now"),
            std::string::npos)
      << message;
}

TEST(TokenFile, CanBeMoved) {
  const Scratch scratch;
  TokenFile file = open(scratch.write("ids", bytes_of(counting(5))), TokenFormat::raw_u16);
  const TokenFile moved = std::move(file);
  EXPECT_EQ(read_all(moved), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
}

TEST(TokenFile, NamesAMissingFile) {
  const Scratch scratch;
  for (const TokenFormat format :
       {TokenFormat::automatic, TokenFormat::llmc, TokenFormat::raw_u16, TokenFormat::raw_u32}) {
    EXPECT_EQ(open_error(scratch / "none", format),
              scratch / "none" + ": cannot be opened: No such file or directory");
  }
  EXPECT_EQ(open_error(scratch / "none", TokenFormat::megatron),
            scratch / "none.idx" + ": cannot be opened: No such file or directory");
}

TEST(TokenFile, NamesTheMissingHalfOfAPair) {
  const Scratch scratch;
  scratch.write("a.bin", "xx");
  EXPECT_EQ(open_error(scratch / "a", TokenFormat::automatic),
            scratch / "a.idx" + ": cannot be opened: No such file or directory");
  scratch.write("b.idx", MegatronIndex{.lengths = {1}}.bytes());
  EXPECT_EQ(open_error(scratch / "b", TokenFormat::automatic),
            scratch / "b.bin" + ": cannot be opened: No such file or directory");
}

TEST(TokenFile, RejectsAFolder) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "folder");
  EXPECT_EQ(open_error(scratch / "folder", TokenFormat::automatic),
            scratch / "folder" + ": is not a regular file");
}

TEST(TokenFile, RejectsEmptyFiles) {
  const Scratch scratch;
  const std::string path = scratch.write("empty", "");
  EXPECT_EQ(open_error(path, TokenFormat::raw_u16),
            path + ": is 0 bytes; legal for this data.format: a multiple of 2, above 0");
  EXPECT_EQ(open_error(path, TokenFormat::llmc),
            path + ": is 0 bytes; llm.c's header alone is 1024");
  EXPECT_EQ(open_error(write_pair(scratch, "p", {.lengths = {}}, ""), TokenFormat::megatron),
            scratch / "p.idx" + ": holds no sequences; nothing to read");
  EXPECT_EQ(open_error(write_pair(scratch, "q", {.lengths = {0}}, ""), TokenFormat::megatron),
            scratch / "q.bin" + ": is 0 bytes; legal: a multiple of 2, above 0");
}

TEST(TokenFile, RejectsHeaderlessFilesOfOddSize) {
  const Scratch scratch;
  const std::string path = scratch.write("odd", "abcdefg");
  EXPECT_EQ(open_error(path, TokenFormat::raw_u16),
            path + ": is 7 bytes; legal for this data.format: a multiple of 2, above 0");
  EXPECT_EQ(open_error(path, TokenFormat::raw_u32),
            path + ": is 7 bytes; legal for this data.format: a multiple of 4, above 0");
}

TEST(TokenFile, AsksForTheFormatOfHeaderlessFiles) {
  const Scratch scratch;
  const std::string path = scratch.write("raw.bin", bytes_of(counting(1000, 1)));
  EXPECT_EQ(open_error(path, TokenFormat::automatic),
            path +
                ": has magic number 131073; legal for llm.c: 20240520 (u16), 20240801 (u32); a "
                "file of nothing but ids needs data.format raw_u16 or raw_u32");
}

TEST(TokenFile, AsksForThePrefixOfAPair) {
  const Scratch scratch;
  write_pair(scratch, "p", {.lengths = {1}}, "xx");
  for (const char* half : {"p.bin", "p.idx"}) {
    EXPECT_EQ(open_error(scratch / half, TokenFormat::automatic),
              scratch / half +
                  ": is half of a Megatron pair, which is named by its prefix: " + scratch / "p");
  }
}

TEST(TokenFile, RejectsLlmcFilesThatDifferFromTheirHeader) {
  const Scratch scratch;
  std::string bytes = llmc_bytes(20240520, 1, counting(10));
  const std::string path = scratch.write("cut", bytes.substr(0, bytes.size() - 2));
  EXPECT_EQ(open_error(path, TokenFormat::automatic),
            path + ": is 1042 bytes, but its header says 10 tokens, which take 1024 + 2 x 10");
  scratch.write("cut", bytes + "z");
  EXPECT_EQ(open_error(path, TokenFormat::automatic),
            path + ": is 1045 bytes, but its header says 10 tokens, which take 1024 + 2 x 10");
  scratch.write("cut", llmc_bytes(20240520, 2, counting(10)));
  EXPECT_EQ(open_error(path, TokenFormat::automatic),
            path + ": is of version 2; legal with magic number 20240520: 1");
  scratch.write("cut", llmc_bytes(20240801, 1, counting(10)));
  EXPECT_EQ(open_error(path, TokenFormat::automatic),
            path + ": is of version 1; legal with magic number 20240801: 7");
  bytes[11] = '\xff';  // a negative number of tokens
  scratch.write("cut", bytes);
  EXPECT_NE(open_error(path, TokenFormat::automatic).find("says -"), std::string::npos);
}

TEST(TokenFile, RejectsAMegatronIndexThatIsNone) {
  const Scratch scratch;
  const std::string tokens = bytes_of(counting(3));
  const auto index_error = [&](const MegatronIndex& index) {
    return open_error(write_pair(scratch, "p", index, tokens), TokenFormat::automatic);
  };
  const std::string idx = scratch / "p.idx";
  EXPECT_EQ(index_error({.magic = "MMAPIDXXX", .lengths = {3}}),
            idx +
                ": begins with 4d 4d 41 50 49 44 58 58 58; a Megatron index begins with MMIDIDX "
                "and two zero bytes");
  EXPECT_EQ(index_error({.version = 2, .lengths = {3}}), idx + ": is of version 2; legal: 1");
  for (const int code : {0, 6, 7, 9, 255}) {
    EXPECT_EQ(index_error({.type_code = static_cast<std::uint8_t>(code), .lengths = {3}}),
              idx + ": has type code " + std::to_string(code) +
                  "; legal for token ids: 1 (u8), 2 (i8), 3 (i16), 4 (i32), 5 (i64), 8 (u16)");
  }
}

TEST(TokenFile, RejectsAMegatronIndexOfAnotherSize) {
  const Scratch scratch;
  write_pair(scratch, "p", {.lengths = {2, 1}}, bytes_of(counting(3)));
  const std::string idx = scratch / "p.idx";
  const std::string bytes = MegatronIndex{.lengths = {2, 1}}.bytes();
  scratch.write("p.idx", bytes.substr(0, 20));
  EXPECT_EQ(open_error(scratch / "p", TokenFormat::automatic),
            idx + ": is 20 bytes; a Megatron index has at least 34");
  for (const std::size_t size : {bytes.size() - 1, bytes.size() - 8, std::size_t{35}}) {
    scratch.write("p.idx", bytes.substr(0, size));
    EXPECT_EQ(open_error(scratch / "p", TokenFormat::automatic),
              idx + ": is " + std::to_string(size) +
                  " bytes, but its header says 2 sequences and 3 document indices, which take "
                  "34 + 12 x 2 + 8 x 3");
  }
  // 12 x 2^62 is 0 in 64 bits, and the 48 bytes of lists would be 6 indices.
  std::string huge = bytes;
  huge.replace(18, 16, bytes_of<std::uint64_t>({std::uint64_t{1} << 62, 6}));
  scratch.write("p.idx", huge);
  EXPECT_NE(open_error(scratch / "p", TokenFormat::automatic)
                .find("says 4611686018427387904 sequences and 6 document indices"),
            std::string::npos);
}

TEST(TokenFile, RejectsHalvesThatAreNoPair) {
  const Scratch scratch;
  const std::string prefix = write_pair(scratch, "p", {.lengths = {2, 3}}, bytes_of(counting(4)));
  EXPECT_EQ(open_error(prefix, TokenFormat::automatic),
            prefix + ".bin: is 8 bytes, but " + prefix +
                ".idx puts its first sequence at byte 0 and its last, of 3 tokens of 2 bytes, at "
                "byte 4; the two are not a pair");
  // The last number of the index is the number of sequences.
  std::string index = MegatronIndex{.lengths = {2, 2}}.bytes();
  index[index.size() - 8] = 9;
  scratch.write("p.idx", index);
  EXPECT_EQ(open_error(prefix, TokenFormat::automatic),
            prefix + ".idx: its document index ends with 9; legal: its number of sequences, 2");
}

}  // namespace
}  // namespace redspine
