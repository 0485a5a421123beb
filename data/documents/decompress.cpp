#include "data/documents/decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <new>
#include <utility>

#include "data/documents/archive.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr const char* kCutShort = "the file ends in the middle of it";

[[noreturn]] void fail(const BlockReader& reader, ContentKind kind, const char* reason) {
  throw ConfigError("", stream_failure(reader.name(), kind, reader.num_taken(), reason));
}

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(BlockReader reader) : reader_(std::move(reader)) {
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
      const std::span<const std::byte> ahead = reader_.ahead();
      if (ahead.empty()) {
        if (is_between_streams_) return 0;
        fail(reader_, ContentKind::gzip, kCutShort);
      }
      // zlib does not write to its input, but for C's sake does not say so.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(ahead.data()));
      stream_.avail_in = static_cast<uInt>(ahead.size());
      if (is_between_streams_) ::inflateReset(&stream_);
      const int result = ::inflate(&stream_, Z_NO_FLUSH);
      reader_.take(ahead.size() - stream_.avail_in);
      if (result != Z_OK && result != Z_STREAM_END) {
        fail(reader_, ContentKind::gzip, stream_.msg != nullptr ? stream_.msg : ::zError(result));
      }
      is_between_streams_ = result == Z_STREAM_END;
    }
    return room - stream_.avail_out;
  }
  std::int64_t num_file_bytes() const override { return reader_.num_file_bytes(); }
  const std::string& name() const override { return reader_.name(); }

 private:
  BlockReader reader_;
  z_stream stream_ = {};
  bool is_between_streams_ = false;
};

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(BlockReader reader)
      : reader_(std::move(reader)), stream_(::ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    // Windows of up to 2 GiB, the most that zstd writes; by itself it would stop at 128 MiB.
    const auto largest = ::ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound;
    ::ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, largest);
  }
  ~ZstdSource() override { ::ZSTD_freeDStream(stream_); }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  std::size_t read(std::span<std::byte> bytes) override {
    ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
    while (out.pos == 0) {
      const std::span<const std::byte> ahead = reader_.ahead();
      // At the end of the file the decoder may still hold text that found no room before.
      ZSTD_inBuffer in{ahead.data(), ahead.size(), 0};
      const std::size_t result = ::ZSTD_decompressStream(stream_, &out, &in);
      reader_.take(in.pos);
      if (::ZSTD_isError(result) != 0) {
        fail(reader_, ContentKind::zstd, ::ZSTD_getErrorName(result));
      }
      if (ahead.empty() && out.pos == 0) {
        if (is_between_frames_) return 0;
        fail(reader_, ContentKind::zstd, kCutShort);
      }
      is_between_frames_ = result == 0;
    }
    return out.pos;
  }
  std::int64_t num_file_bytes() const override { return reader_.num_file_bytes(); }
  const std::string& name() const override { return reader_.name(); }

 private:
  BlockReader reader_;
  ZSTD_DStream* stream_;
  bool is_between_frames_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> decompress(BlockReader reader, ContentKind kind) {
  assert(is_compressed(kind));
  if (kind == ContentKind::gzip) return std::make_unique<GzipSource>(std::move(reader));
  if (kind == ContentKind::zstd) return std::make_unique<ZstdSource>(std::move(reader));
  return decompress_by_libarchive(std::move(reader), kind);
}

}  // namespace redspine
