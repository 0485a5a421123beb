#include "data/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "data/file.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::size_t kBlockSize = std::size_t{1} << 17;  // bytes read from a file at once

/// A file with a view of the bytes that come next.
class BlockReader {
 public:
  explicit BlockReader(File file) : file_(std::move(file)), block_(kBlockSize) {}

  /// What was read and not yet taken; empty only at the end of the file.
  std::span<const std::byte> ahead() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = file_.read(block_);
    }
    return std::span(block_).subspan(begin_, end_ - begin_);
  }
  void take(std::size_t count) {
    begin_ += count;
    num_taken_ += static_cast<std::int64_t>(count);
  }
  /// The first bytes of the file, before any is taken; fewer where the file is shorter. A pipe may
  /// deliver them one by one.
  std::span<const std::byte> peek(std::size_t count) {
    while (end_ < count) {
      const std::size_t num_read = file_.read(std::span(block_).subspan(end_));
      if (num_read == 0) break;
      end_ += num_read;
    }
    return std::span(block_).first(std::min(count, end_));
  }

  std::int64_t num_taken() const { return num_taken_; }
  const std::string& name() const { return file_.path(); }

 private:
  File file_;
  std::vector<std::byte> block_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t num_taken_ = 0;
};

/// What all kinds share.
class BlockSource : public ByteSource {
 public:
  explicit BlockSource(BlockReader reader) : reader_(std::move(reader)) {}
  std::int64_t num_file_bytes() const override { return reader_.num_taken(); }
  const std::string& name() const override { return reader_.name(); }

 protected:
  BlockReader& reader() { return reader_; }
  [[noreturn]] void fail(const char* kind, const std::string& reason) const {
    throw ConfigError("", fmt::format("{}: its {} stream fails at byte {} of the file: {}", name(),
                                      kind, num_file_bytes(), reason));
  }

 private:
  BlockReader reader_;
};

class PlainSource final : public BlockSource {
 public:
  using BlockSource::BlockSource;

  std::size_t read(std::span<std::byte> bytes) override {
    const std::span<const std::byte> ahead = reader().ahead();
    const std::size_t count = std::min(ahead.size(), bytes.size());
    std::copy_n(ahead.begin(), count, bytes.begin());
    reader().take(count);
    return count;
  }
};

class GzipSource final : public BlockSource {
 public:
  explicit GzipSource(BlockReader reader) : BlockSource(std::move(reader)) {
    constexpr int kGzipAlone = 16 + MAX_WBITS;
    if (::inflateInit2(&stream_, kGzipAlone) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { ::inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<std::byte> bytes) override {
    const auto room = static_cast<uInt>(
        std::min<std::size_t>(bytes.size(), std::numeric_limits<std::int32_t>::max()));
    stream_.next_out = reinterpret_cast<Bytef*>(bytes.data());
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
      const std::span<const std::byte> ahead = reader().ahead();
      if (ahead.empty()) {
        if (is_between_streams_) return 0;
        fail("gzip", "the file ends in the middle of it");
      }
      // zlib does not write to its input, but for C's sake does not say so.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(ahead.data()));
      stream_.avail_in = static_cast<uInt>(ahead.size());
      if (is_between_streams_) ::inflateReset(&stream_);
      const int result = ::inflate(&stream_, Z_NO_FLUSH);
      reader().take(ahead.size() - stream_.avail_in);
      if (result != Z_OK && result != Z_STREAM_END) {
        fail("gzip", stream_.msg != nullptr ? stream_.msg : ::zError(result));
      }
      is_between_streams_ = result == Z_STREAM_END;
    }
    return room - stream_.avail_out;
  }

 private:
  z_stream stream_ = {};
  bool is_between_streams_ = false;
};

class ZstdSource final : public BlockSource {
 public:
  explicit ZstdSource(BlockReader reader)
      : BlockSource(std::move(reader)), stream_(::ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~ZstdSource() override { ::ZSTD_freeDStream(stream_); }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  std::size_t read(std::span<std::byte> bytes) override {
    ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
    while (out.pos == 0) {
      const std::span<const std::byte> ahead = reader().ahead();
      // At the end of the file the decoder may still hold text that found no room before.
      ZSTD_inBuffer in{ahead.data(), ahead.size(), 0};
      const std::size_t result = ::ZSTD_decompressStream(stream_, &out, &in);
      reader().take(in.pos);
      if (::ZSTD_isError(result) != 0) fail("zstd", ::ZSTD_getErrorName(result));
      if (ahead.empty() && out.pos == 0) {
        if (is_between_frames_) return 0;
        fail("zstd", "the file ends in the middle of it");
      }
      is_between_frames_ = result == 0;
    }
    return out.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool is_between_frames_ = false;
};

bool begins_like_gzip(std::span<const std::byte> bytes) {
  constexpr std::array kMagic = {std::byte{0x1F}, std::byte{0x8B}, std::byte{8}};
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

bool begins_like_zstd(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return false;
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  return magic == ZSTD_MAGICNUMBER ||
         (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

}  // namespace

std::unique_ptr<ByteSource> ByteSource::open(const std::string& path) {
  BlockReader reader(File::open_stream(path));
  const std::span<const std::byte> first = reader.peek(4);
  if (begins_like_gzip(first)) return std::make_unique<GzipSource>(std::move(reader));
  if (begins_like_zstd(first)) return std::make_unique<ZstdSource>(std::move(reader));
  return std::make_unique<PlainSource>(std::move(reader));
}

}  // namespace redspine
