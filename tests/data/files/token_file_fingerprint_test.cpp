#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "data/files/token_file.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

TokenFile open(const std::string& path, TokenFormat format = TokenFormat::raw_u16) {
  return TokenFile::open(path, format, "data.train[0].path");
}

void change_byte(const std::string& path, std::int64_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(at);
  file << '\7';
}

TEST(Fingerprint, IsThatOfTheContentAlone) {
  const Scratch scratch;
  const FileFingerprint a = open(scratch.write("a", bytes_of(counting(1000)))).fingerprint();
  const FileFingerprint b = open(scratch.write("b", bytes_of(counting(1000)))).fingerprint();
  EXPECT_EQ(a.path, scratch / "a");
  EXPECT_EQ(a.num_bytes, 2000);
  EXPECT_EQ(a.hash.size(), 32U);
  EXPECT_EQ(a.hash, b.hash);
}

TEST(Fingerprint, IsOfEveryByteOfAFileOfUpTo64Mib) {
  const Scratch scratch;
  const std::string path = scratch.write("file", "");
  std::filesystem::resize_file(path, 64 * kMib);  // a hole
  std::string hash = open(path).fingerprint().hash;
  for (const std::int64_t at : {std::int64_t{0}, 33 * kMib - 1, 64 * kMib - 1}) {
    change_byte(path, at);
    const std::string changed = open(path).fingerprint().hash;
    EXPECT_NE(changed, hash) << at;
    hash = changed;
  }
}

TEST(Fingerprint, IsOfBlocksFromTheBeginningToTheEndOfALargerFile) {
  const Scratch scratch;
  const std::string path = scratch.write("file", "");
  const std::int64_t size = 127 * kMib;  // a block, a gap, ..., a block
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size));
  std::string hash = open(path).fingerprint().hash;
  for (const std::int64_t at : {std::int64_t{0}, kMib - 1, 2 * kMib, size - kMib, size - 1}) {
    change_byte(path, at);
    const std::string changed = open(path).fingerprint().hash;
    EXPECT_NE(changed, hash) << at;
    hash = changed;
  }
  change_byte(path, kMib);
  EXPECT_EQ(open(path).fingerprint().hash, hash) << "more is read than promised";
}

TEST(Fingerprint, IsOfTheIndexToo) {
  const Scratch scratch;
  const MegatronIndex one{.lengths = {2, 4}};
  scratch.write("pair.idx", one.bytes());
  scratch.write("pair.bin", bytes_of(counting(6)));
  const FileFingerprint before = open(scratch / "pair", TokenFormat::megatron).fingerprint();
  const MegatronIndex other{.lengths = {3, 3}};
  scratch.write("pair.idx", other.bytes());
  const FileFingerprint after = open(scratch / "pair", TokenFormat::megatron).fingerprint();
  EXPECT_EQ(after.num_bytes, before.num_bytes);
  EXPECT_NE(after.hash, before.hash);
}

TEST(Identity, IsThatOfOneFileUntilItChanges) {
  const Scratch scratch;
  const std::string path = scratch.write("a", bytes_of(counting(1000)));
  const std::string identity = open(path).identity();
  EXPECT_EQ(open(path).identity(), identity);
  std::filesystem::copy_file(path, scratch / "b");
  std::filesystem::rename(scratch / "b", path);
  EXPECT_NE(open(path).identity(), identity);
}

}  // namespace
}  // namespace redspine
