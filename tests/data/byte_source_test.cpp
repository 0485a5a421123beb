#include "data/byte_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "tests/data/scratch.h"

namespace redspine {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string bytes(::deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  ::deflateEnd(&stream);
  return bytes;
}

std::string zstd(const std::string& text) {
  std::string bytes(::ZSTD_compressBound(text.size()) + 4, '\0');
  ZSTD_CCtx* context = ::ZSTD_createCCtx();
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);  // as the zstd command does
  bytes.resize(::ZSTD_compress2(context, bytes.data(), bytes.size(), text.data(), text.size()));
  ::ZSTD_freeCCtx(context);
  return bytes;
}

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
  return read_all(*ByteSource::open(path), size);
}

/// Compresses to about half.
std::string some_text(std::size_t size) {
  std::mt19937 random(1);
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 16);
  return text;
}

TEST(ByteSource, GivesAFileAsItIs) {
  const Scratch scratch;
  const std::string text = some_text(500'000);
  EXPECT_EQ(read_all(scratch.write("a", text)), text);
  EXPECT_EQ(read_all(scratch.write("a", "")), "");
  EXPECT_EQ(read_all(scratch.write("a", "\x1f\x8b")), "\x1f\x8b");
}

TEST(ByteSource, DecompressesByContentWhateverTheName) {
  const Scratch scratch;
  const std::string text = some_text(1'000'000);
  for (const std::string& bytes : {gzip(text), zstd(text)}) {
    const std::string path = scratch.write("a.txt", bytes);
    for (const std::size_t size : {1'000u, 100'000u, 10'000'000u}) {
      EXPECT_EQ(read_all(path, size), text);
    }
    const auto source = ByteSource::open(path);
    read_all(*source, 1'000);
    EXPECT_EQ(source->num_file_bytes(), static_cast<std::int64_t>(bytes.size()));
  }
  EXPECT_EQ(read_all(scratch.write("b", gzip(""))), "");
  EXPECT_EQ(read_all(scratch.write("b", zstd(""))), "");
}

TEST(ByteSource, ReadsStreamsOneAfterAnother) {
  const Scratch scratch;
  const std::string text = some_text(300'000);
  EXPECT_EQ(read_all(scratch.write("a", gzip(text) + gzip("") + gzip("end"))), text + "end");
  EXPECT_EQ(read_all(scratch.write("b", zstd(text) + zstd("") + zstd("end"))), text + "end");
  const std::string skippable("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);  // as pzstd writes first
  EXPECT_EQ(read_all(scratch.write("c", skippable + zstd("text"))), "text");
}

TEST(ByteSource, NamesACompressedFileThatIsCutOrDamaged) {
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

TEST(ByteSource, ReadsAPipeThatDeliversByteByByte) {
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

}  // namespace
}  // namespace redspine
