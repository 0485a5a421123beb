#include "data/documents/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zstd.h>

#include <array>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "tests/data/documents/compressed.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

/// Reads through a window of `size` bytes.
std::string read_all(ByteSource& source, std::size_t size) {
  std::string text;
  std::vector<std::byte> bytes(size);
  while (const std::size_t count = source.read(bytes)) {
    text.append(reinterpret_cast<const char*>(bytes.data()), count);
  }
  EXPECT_EQ(source.read(bytes), 0u);  // an end stays one
  return text;
}

std::string read_all(const std::string& path, std::size_t size = 10'000) {
  const auto file = InputFile::open(path);
  std::string text = read_all(*file->next(), size);
  EXPECT_EQ(file->next(), nullptr);
  return text;
}

/// Compresses to about half.
std::string some_text(std::size_t size) {
  std::mt19937 random(1);
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 16);
  return text;
}

TEST(InputFile, GivesAFileAsItIs) {
  const Scratch scratch;
  const std::string text = some_text(500'000);
  EXPECT_EQ(read_all(scratch.write("a", text)), text);
  EXPECT_EQ(read_all(scratch.write("a", "")), "");
  EXPECT_EQ(read_all(scratch.write("a", "\x1f\x8b")), "\x1f\x8b");
}

TEST(InputFile, DecompressesByContentWhateverTheName) {
  const Scratch scratch;
  const std::string text = some_text(1'000'000);
  for (const std::string& bytes : {gzip(text), zstd(text)}) {
    const std::string path = scratch.write("a.txt", bytes);
    for (const std::size_t size : {1'000u, 100'000u, 10'000'000u}) {
      EXPECT_EQ(read_all(path, size), text);
    }
    const auto source = InputFile::open(path)->next();
    read_all(*source, 1'000);
    EXPECT_EQ(source->num_file_bytes(), static_cast<std::int64_t>(bytes.size()));
  }
  EXPECT_EQ(read_all(scratch.write("b", gzip(""))), "");
  EXPECT_EQ(read_all(scratch.write("b", zstd(""))), "");
}

TEST(InputFile, ReadsStreamsOneAfterAnother) {
  const Scratch scratch;
  const std::string text = some_text(300'000);
  EXPECT_EQ(read_all(scratch.write("a", gzip(text) + gzip("") + gzip("end"))), text + "end");
  EXPECT_EQ(read_all(scratch.write("b", zstd(text) + zstd("") + zstd("end"))), text + "end");
  const std::string skippable("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);  // as pzstd writes first
  EXPECT_EQ(read_all(scratch.write("c", skippable + zstd("text"))), "text");
}

TEST(InputFile, NamesACompressedFileThatIsCutOrDamaged) {
  const Scratch scratch;
  const std::string text = some_text(300'000);
  for (const std::string kind : {"gzip", "zstd"}) {
    const std::string bytes = kind == "gzip" ? gzip(text) : zstd(text);
    for (const std::size_t size : {bytes.size() - 1, bytes.size() / 2, std::size_t{20}}) {
      const std::string path = scratch.write("cut", bytes.substr(0, size));
      EXPECT_EQ(config_error_of([&] { read_all(path); }),
                path + ": its " + kind + " stream fails at byte " + std::to_string(size) +
                    " of the file: the file ends in the middle of it");
    }
    std::string damaged = bytes;
    damaged.replace(damaged.size() / 2, 40, 40, '\xff');
    const std::string path = scratch.write("damaged", damaged);
    EXPECT_TRUE(config_error_of([&] {
                  read_all(path);
                }).starts_with(path + ": its " + kind + " stream fails at byte "));
    scratch.write("damaged", bytes + "and more");
    EXPECT_TRUE(config_error_of([&] { read_all(path); }).starts_with(path + ": its " + kind));
  }
}

TEST(InputFile, ReadsAPipeThatDeliversByteByByte) {
  const Scratch scratch;
  const std::string path = scratch / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string bytes = gzip("through a pipe");
  std::thread writer([&] {
    std::ofstream pipe(path, std::ios::binary);
    for (const char byte : bytes) pipe.put(byte).flush();
  });
  EXPECT_EQ(read_all(path), "through a pipe");
  writer.join();
}

TEST(InputFile, ThatCannotBeReadIsNamed) {
  const Scratch scratch;
  EXPECT_EQ(config_error_of([&] { InputFile::open(scratch / "none"); }),
            scratch / "none" + ": cannot be opened: No such file or directory");
  EXPECT_EQ(config_error_of([&] { InputFile::open(scratch / ""); }),
            scratch / "" + ": is a folder; legal: a file");
}

TEST(InputFile, DecompressesXzAndBzip2) {
  const Scratch scratch;
  const std::string text = some_text(1'000'000);
  for (const std::string& bytes : {xz(text), bzip2(text)}) {
    const std::string path = scratch.write("a", bytes + bytes);
    for (const std::size_t size : {1'000u, 10'000'000u})
      EXPECT_EQ(read_all(path, size), text + text);
  }
  EXPECT_EQ(read_all(scratch.write("b", xz(""))), "");
  EXPECT_EQ(read_all(scratch.write("b", bzip2(""))), "");
}

TEST(InputFile, NamesXzAndBzip2ThatAreCutOrDamaged) {
  const Scratch scratch;
  const std::string text = some_text(300'000);
  for (const std::string kind : {"xz", "bzip2"}) {
    const std::string bytes = kind == "xz" ? xz(text) : bzip2(text);
    std::string damaged = bytes;
    damaged.replace(damaged.size() / 2, 40, 40, '\xff');
    std::string damaged_second = bytes + bytes;
    damaged_second.replace(bytes.size() * 3 / 2, 40, 40, '\xff');
    std::string headless_second = bytes + bytes;
    headless_second[bytes.size()] = 'x';
    for (const std::string& bad :
         {damaged, damaged_second, headless_second, bytes + "more", bytes + bytes.substr(0, 30),
          bytes.substr(0, bytes.size() - 1), bytes.substr(0, bytes.size() / 2)}) {
      const std::string path = scratch.write("a", bad);
      const std::string message = config_error_of([&] { read_all(path); });
      EXPECT_TRUE(message.starts_with(path + ": its " + kind + " stream fails at byte "))
          << message;
    }
  }
}

TEST(InputFile, ReadsZstdOfTheLongestWindow) {
  const Scratch scratch;
  ZSTD_CCtx* context = ::ZSTD_createCCtx();
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 31);
  const std::string text = some_text(10'000);
  std::string bytes(::ZSTD_compressBound(text.size()) + 100, '\0');
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
  // As a stream, whose size the frame cannot tell, so it asks for the window.
  while (::ZSTD_compressStream2(context, &out, &in, in.pos < 5'000 ? ZSTD_e_flush : ZSTD_e_end) !=
         0) {
  }
  ::ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
  ::ZSTD_freeCCtx(context);
  bytes.resize(out.pos);
  EXPECT_EQ(read_all(scratch.write("a", bytes)), text);
}

TEST(InputFile, RejectsWhatIsCompressedTwice) {
  const Scratch scratch;
  const std::string path = scratch.write("a", gzip(zstd("text")));
  EXPECT_EQ(config_error_of([&] { InputFile::open(path); }),
            path + ": is compressed twice, within by zstd; legal: once");
}

TEST(InputFile, RejectsWhatIsNoTextAndSaysHowToConvertIt) {
  using namespace std::string_literals;
  const Scratch scratch;
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"PAR1\x15\x04"s,
       "is a Parquet file; legal: text, JSON lines, and tar, zip, gzip, zstd, xz or "
       "bzip2 of them; with Python: pandas.read_parquet"},
      {"ARROW1\0\0"s, "is an Arrow file"},
      {"\xff\xff\xff\xff\x10\0\0\0"s, "is an Arrow stream"},
      {"\xff\xfeT\0"s, "is text in UTF-16"},
      {"\xfe\xff\0T"s, "is text in UTF-16"},
      {"\xff\xfe\0\0T\0\0\0"s, "is text in UTF-32"},
      {"7z\xbc\xaf\x27\x1c"s, "is a 7z archive"},
      {"SQLite format 3\0"s, "is an SQLite database"},
      {"MMIDIDX\0\0"s, "is the .idx of token files"},
      {llmc_bytes<std::uint16_t>(20240520, 1, {1, 2}), "is a file of tokens"},
  };
  for (const auto& [bytes, text] : kinds) {
    for (const std::string& stored : {bytes, gzip(bytes)}) {
      const std::string path = scratch.write("a", stored);
      const std::string message = config_error_of([&] { InputFile::open(path); });
      EXPECT_TRUE(message.starts_with(path + ": " + text)) << message;
    }
  }
  for (const std::string text : {"PAR1 is a receptor", "ARROW1", "BZh91AY&S", "\xef\xbb\xbftext"}) {
    EXPECT_EQ(read_all(scratch.write("a", text)), text);
  }
}

}  // namespace
}  // namespace redspine
