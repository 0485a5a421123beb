#include "tests/data/documents/compressed.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>

#include "tests/support/scratch.h"

namespace redspine {

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

std::string xz(const std::string& text) {
  std::string bytes(::lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(::lzma_easy_buffer_encode(
                6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                text.size(), reinterpret_cast<std::uint8_t*>(bytes.data()), &size, bytes.size()),
            LZMA_OK);
  bytes.resize(size);
  return bytes;
}

std::string bzip2(const std::string& text) {
  std::string bytes(text.size() + text.size() / 100 + 600, '\0');
  auto size = static_cast<unsigned int>(bytes.size());
  EXPECT_EQ(::BZ2_bzBuffToBuffCompress(bytes.data(), &size, const_cast<char*>(text.data()),
                                       static_cast<unsigned int>(text.size()), 9, 0, 0),
            BZ_OK);
  bytes.resize(size);
  return bytes;
}

std::string tar_member(const ArchiveMember& member) {
  std::string header(512, '\0');
  const auto put = [&header](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  const bool has_text = member.tar_type == '0';
  put(0, member.name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", has_text ? member.text.size() : 0));
  put(136, "00000000000");
  put(148, "        ");
  put(156, std::string(1, member.tar_type));
  put(157, has_text ? "" : member.text);  // where a link leads
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned int sum = 0;
  for (const unsigned char byte : header) sum += byte;
  put(148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  if (!has_text) return header;
  return header + member.text + std::string((512 - member.text.size() % 512) % 512, '\0');
}

std::string tar(const std::vector<ArchiveMember>& members) {
  std::string bytes;
  for (const ArchiveMember& member : members) bytes += tar_member(member);
  return bytes + std::string(1024, '\0');
}

std::string zip(const std::vector<ArchiveMember>& members) {
  using Shorts = std::vector<std::uint16_t>;
  using Longs = std::vector<std::uint32_t>;
  constexpr std::uint16_t kUtf8 = 1 << 11;
  std::string files;
  std::string list;
  for (const ArchiveMember& member : members) {
    const auto crc =
        static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(member.text.data()),
                                           static_cast<uInt>(member.text.size())));
    const auto size = static_cast<std::uint32_t>(member.text.size());
    const auto name_size = static_cast<std::uint16_t>(member.name.size());
    const auto offset = static_cast<std::uint32_t>(files.size());
    const std::string same = bytes_of(Shorts{20, kUtf8, 0, 0, 33}) +
                             bytes_of(Longs{crc, size, size}) + bytes_of(Shorts{name_size, 0});
    files += "PK\3\4" + same + member.name + member.text;
    list += "PK\1\2" + bytes_of(Shorts{20}) + same + bytes_of(Shorts{0, 0, 0}) +
            bytes_of(Longs{0, offset}) + member.name;
  }
  const auto count = static_cast<std::uint16_t>(members.size());
  return files + list + "PK\5\6" + bytes_of(Shorts{0, 0, count, count}) +
         bytes_of(Longs{static_cast<std::uint32_t>(list.size()),
                        static_cast<std::uint32_t>(files.size())}) +
         bytes_of(Shorts{0});
}

}  // namespace redspine
