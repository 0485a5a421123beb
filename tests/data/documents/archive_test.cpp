// Archives as inputs: their files are documents in their order, and whatever is wrong with an
// archive is told with the file in it.
#include <gtest/gtest.h>

#include <vector>

#include "data/documents/input_file.h"
#include "tests/data/documents/compressed.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;  // name, text

Texts read_archive(const std::string& path) {
  const auto file = InputFile::open(path);
  Texts texts;
  std::vector<std::byte> bytes(1000);
  while (const auto source = file->next()) {
    texts.emplace_back(source->name(), "");
    while (const std::size_t size = source->read(bytes)) {
      texts.back().second.append(reinterpret_cast<const char*>(bytes.data()), size);
    }
  }
  return texts;
}

std::string message_of(const std::string& path) {
  return config_error_of([&] { read_archive(path); });
}

const std::string kLong(300'000, 'x');

TEST(Archive, GivesItsFilesInTheirOrderWithoutHiddenOnes) {
  const Scratch scratch;
  const std::vector<ArchiveMember> members = {
      {"b/", "", '5'},     {"b/Grüße.txt", "one"},      {"./a.jsonl", kLong},
      {"b/.hidden", "x"},  {"__MACOSX/._a.jsonl", "x"}, {"b/.git/config", "x"},
      {"b/empty.txt", ""}, {"../c.gz", gzip("three")}};
  for (const std::string& bytes :
       {tar(members), gzip(tar(members)), zstd(tar(members)), xz(tar(members)), bzip2(tar(members)),
        zip({members.begin() + 1, members.end()})}) {
    const std::string path = scratch.write("a", bytes);
    EXPECT_EQ(read_archive(path), (Texts{{path + ": b/Grüße.txt", "one"},
                                         {path + ": ./a.jsonl", kLong},
                                         {path + ": b/empty.txt", ""},
                                         {path + ": ../c.gz", "three"}}));
  }
}

TEST(Archive, ThatIsCutShortIsRejectedWhereverTheCutIs) {
  const Scratch scratch;
  const std::string first = tar_member({"one.txt", "one"});
  const std::string archive = tar({{"one.txt", "one"}, {"two.txt", kLong}});
  const std::string path = scratch / "a";
  // In a header, in a text, and between two files.
  scratch.write("a", archive.substr(0, first.size() + 100));
  EXPECT_TRUE(message_of(path).starts_with(path + ": one.txt: reading the tar archive fails"))
      << message_of(path);
  scratch.write("a", archive.substr(0, first.size() + 1000));
  EXPECT_EQ(message_of(path), path +
                                  ": two.txt: reading the tar archive fails: Truncated tar "
                                  "archive");
  const std::string no_end = path + ": is cut short: the mark at the end of a tar is missing";
  scratch.write("a", archive.substr(0, archive.size() - 1024));
  EXPECT_EQ(message_of(path), no_end);
  scratch.write("a", first);
  EXPECT_EQ(message_of(path), no_end);
  // In a compressed one, also behind the mark.
  for (const std::string& bytes : {gzip(archive), zstd(archive), xz(archive), bzip2(archive)}) {
    for (const std::size_t size : {bytes.size() - 1, bytes.size() / 2}) {
      scratch.write("a", bytes.substr(0, size));
      EXPECT_NE(message_of(path).find(" stream fails at byte "), std::string::npos)
          << message_of(path);
    }
  }
  const std::string zipped = zip({{"one.txt", "one"}, {"two.txt", kLong}});
  for (const std::size_t size : {zipped.size() - 1, zipped.size() / 2, std::size_t{40}}) {
    scratch.write("a", zipped.substr(0, size));
    EXPECT_TRUE(message_of(path).starts_with(path + ": reading the zip archive fails: "))
        << message_of(path);
  }
}

TEST(Archive, ThatIsDamagedInItsSecondFileIsRejected) {
  const Scratch scratch;
  const std::string path = scratch / "a";
  const std::string first = tar_member({"one.txt", "one"});
  std::string damaged = tar({{"one.txt", "one"}, {"two.txt", "two"}});
  damaged[first.size() + 3] ^= 1;  // the header's checksum no longer holds
  scratch.write("a", damaged);
  EXPECT_TRUE(message_of(path).starts_with(path + ": ")) << message_of(path);
  EXPECT_NE(message_of(path).find("reading the tar archive fails: Damaged tar archive"),
            std::string::npos)
      << message_of(path);

  const std::string archive = tar({{"one.txt", kLong}, {"two.txt", kLong}});
  std::string second = gzip(archive.substr(0, 200'000)) + gzip(archive.substr(200'000));
  second[second.size() - 6] ^= 1;  // the checksum of the second stream
  scratch.write("a", second);
  EXPECT_NE(message_of(path).find(": its gzip stream fails at byte "), std::string::npos)
      << message_of(path);

  const std::string zipped = zip({{"one.txt", "one"}, {"two.txt", "two"}});
  const std::size_t header = zipped.find("PK\3\4", 4);
  for (const std::size_t at : {header, zipped.rfind("twoPK") + 1}) {
    damaged = zipped;
    damaged[at] ^= 1;
    scratch.write("a", damaged);
    EXPECT_NE(message_of(path).find("reading the zip archive fails: "), std::string::npos)
        << message_of(path);
    EXPECT_TRUE(message_of(path).starts_with(path + ": ")) << message_of(path);
  }
  EXPECT_TRUE(message_of(path).starts_with(
      path + ": two.txt: reading the zip archive fails: ZIP bad CRC: "))
      << message_of(path);
}

TEST(Archive, ThatIsFollowedByMoreIsRejected) {
  const Scratch scratch;
  const std::string archive = tar({{"one.txt", "one"}});
  EXPECT_EQ(
      message_of(scratch.write("a", archive + archive)),
      scratch / "a" + ": has more behind the mark at the end of a tar; legal: one tar a file");
  EXPECT_EQ(read_archive(scratch.write("a", archive + std::string(1'000'000, '\0'))).size(), 1u);
}

TEST(Archive, HasFilesThatAreRejectedByName) {
  const Scratch scratch;
  const std::string path = scratch / "a";
  const auto expect = [&](const std::string& bytes, const std::string& text) {
    scratch.write("a", bytes);
    EXPECT_EQ(message_of(path), path + text);
  };
  for (const char type : {'1', '2'}) {
    expect(tar({{"one", "1"}, {"two", "one", type}}),
           ": two: is a link or a device; unpack the archive, and give what was in it");
  }
  const std::string nested =
      ": b.tar: is an archive in an archive; unpack the outer one, and give what was in it";
  expect(tar({{"b.tar", gzip(tar({{"c", "c"}}))}}), nested);
  expect(zip({{"b.tar", tar({{"c", "c"}})}}), nested);
  expect(tar({{"b/", "", '5'}, {"b/.c", "x"}}), ": is an archive without files");
  scratch.write("a", tar({{"b.parquet", "PAR1\x15"}}));
  EXPECT_TRUE(message_of(path).starts_with(path + ": b.parquet: is a Parquet file"))
      << message_of(path);
  std::string encrypted = zip({{"one.txt", "one"}, {"two.txt", "two"}});
  encrypted[encrypted.find("PK\3\4", 4) + 6] |= 1;  // the flag of the second file, in both places
  encrypted[encrypted.rfind("PK\1\2") + 8] |= 1;
  expect(encrypted, ": two.txt: is encrypted; unpack the archive, and give what was in it");
  scratch.write("a", gzip(zip({{"one.txt", "one"}})));
  EXPECT_TRUE(message_of(path).starts_with(path + ": is a zip in a compressed file or from a pipe"))
      << message_of(path);
}

}  // namespace
}  // namespace redspine
