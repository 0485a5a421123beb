#include "data/documents/content_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "data/files/token_format.h"
#include "tensor/error.h"

namespace redspine {
namespace {

using namespace std::string_view_literals;

struct KnownKind {
  std::string_view magic;
  ContentKind kind;
};

constexpr std::array kKnownKinds = {
    KnownKind{"\x1F\x8B\x08"sv, ContentKind::gzip},
    KnownKind{"\x28\xB5\x2F\xFD"sv, ContentKind::zstd},
    KnownKind{"\xFD\x37zXZ\0"sv, ContentKind::xz},
    KnownKind{"PK\3\4"sv, ContentKind::zip},
};

/// What is no text and is not turned into it either.
struct ForeignKind {
  std::string_view magic;
  const char* is;
  const char* cure;
};

constexpr const char* kParquet =
    "with Python: pandas.read_parquet(\"FILE\").to_json(\"NEW.jsonl\", orient=\"records\", "
    "lines=True)";
constexpr const char* kFeather =
    "with Python: pandas.read_feather(\"FILE\").to_json(\"NEW.jsonl\", orient=\"records\", "
    "lines=True)";
constexpr const char* kArrowStream =
    "with Python: datasets.Dataset.from_file(\"FILE\").to_json(\"NEW.jsonl\")";
constexpr const char* kOrc =
    "with Python: pandas.read_orc(\"FILE\").to_json(\"NEW.jsonl\", orient=\"records\", "
    "lines=True)";
constexpr const char* kUtf16 = "with: iconv -f UTF-16 -t UTF-8 FILE > NEW";
constexpr const char* kUtf32 = "with: iconv -f UTF-32 -t UTF-8 FILE > NEW";
constexpr const char* kUnpack = "unpack it, and give what was in it";
constexpr const char* kLines = "write its text as JSON lines";
constexpr const char* kLeaveOut = "leave it out of the inputs";

constexpr std::array kForeignKinds = {
    ForeignKind{"PAR1"sv, "a Parquet file", kParquet},
    ForeignKind{"PARE"sv, "an encrypted Parquet file", kLines},
    ForeignKind{"ARROW1\0\0"sv, "an Arrow file", kFeather},
    ForeignKind{"FEA1"sv, "a Feather file", kFeather},
    ForeignKind{"ORC"sv, "an ORC file", kOrc},
    ForeignKind{"Obj\1"sv, "an Avro file", kLines},
    ForeignKind{"\x89HDF\r\n"sv, "an HDF5 file", kLines},
    ForeignKind{"SQLite format 3\0"sv, "an SQLite database", kLines},
    ForeignKind{"\x93NUMPY"sv, "a NumPy array", kLines},
    ForeignKind{"\x80\2"sv, "a Python pickle", kLines},
    ForeignKind{"\x80\3"sv, "a Python pickle", kLines},
    ForeignKind{"\x80\4\x95"sv, "a Python pickle", kLines},
    ForeignKind{"\x80\5\x95"sv, "a Python pickle", kLines},
    // UTF-32 before UTF-16, whose mark it begins with.
    ForeignKind{"\xFF\xFE\0\0"sv, "text in UTF-32, not UTF-8", kUtf32},
    ForeignKind{"\0\0\xFE\xFF"sv, "text in UTF-32, not UTF-8", kUtf32},
    ForeignKind{"\xFF\xFE"sv, "text in UTF-16, not UTF-8", kUtf16},
    ForeignKind{"\xFE\xFF"sv, "text in UTF-16, not UTF-8", kUtf16},
    ForeignKind{"7z\xBC\xAF\x27\x1C"sv, "a 7z archive", kUnpack},
    ForeignKind{"Rar!\x1A\x07"sv, "a RAR archive", kUnpack},
    ForeignKind{"PK\5\6"sv, "a zip archive without files", kLeaveOut},
    ForeignKind{"PK\7\x08"sv, "one part of a zip archive", kUnpack},
    ForeignKind{"\x04\x22\x4D\x18"sv, "compressed by lz4", kUnpack},
    ForeignKind{"LZIP\1"sv, "compressed by lzip", kUnpack},
    ForeignKind{"\x1F\x9D"sv, "compressed by compress", kUnpack},
    ForeignKind{"%PDF-1."sv, "a PDF", "with: pdftotext FILE NEW"},
    ForeignKind{"%PDF-2."sv, "a PDF", "with: pdftotext FILE NEW"},
    ForeignKind{"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, "an office document", "save it as text"},
    ForeignKind{"\x89PNG\r\n"sv, "an image", kLeaveOut},
    ForeignKind{"\xFF\xD8\xFF"sv, "an image", kLeaveOut},
    ForeignKind{"\x7F"
                "ELF"sv,
                "a program", kLeaveOut},
    ForeignKind{"GGUF"sv, "a model's weights", kLeaveOut},
    ForeignKind{megatron::kMagic, "the .idx of token files", kLeaveOut},
};

constexpr bool is_printable(char c) { return c >= 0x20 && c < 0x7F; }

/// Bytes that text does not have, though terminals' may: backspace and escape do not count.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x08 || (byte >= 0x0E && byte < 0x1B) || (byte > 0x1B && byte < 0x20);
}

bool begins_with(std::string_view first, std::string_view magic) {
  if (!first.starts_with(magic)) return false;
  // A text may well begin with the word PAR1.
  const bool is_word = magic.size() <= 4 && std::all_of(magic.begin(), magic.end(), is_printable);
  return !is_word || std::any_of(first.begin(), first.end(), is_control);
}

template <typename T>
T number_at(std::string_view first, std::size_t offset) {
  T number = 0;
  if (first.size() >= offset + sizeof(T)) {
    std::memcpy(&number, first.data() + offset, sizeof(T));
  }
  return number;
}

/// Another tool's frame, which zstd passes over.
bool is_skippable_frame(std::string_view first) {
  return (number_at<std::uint32_t>(first, 0) & 0xFFFFFFF0U) == 0x184D2A50U;
}

bool is_bzip2(std::string_view first) {
  constexpr std::string_view kBlock = "1AY&SY";
  constexpr std::string_view kEnd = "\x17\x72\x45\x38\x50\x90";
  if (!first.starts_with("BZh") || first.size() < 10) return false;
  return first.substr(4, 6) == kBlock || first.substr(4, 6) == kEnd;
}

/// A header of 512 bytes whose checksum holds, or that of a tar which is damaged.
bool is_tar(std::string_view first) {
  constexpr std::size_t kChecksum = 148;
  constexpr std::size_t kMagic = 257;
  if (first.size() < 512) return false;
  if (first.substr(kMagic, 5) == "ustar") return true;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 512; ++i) {
    const bool is_checksum = i >= kChecksum && i < kChecksum + 8;
    sum += is_checksum ? ' ' : static_cast<unsigned char>(first[i]);
  }
  std::uint32_t stored = 0;
  std::size_t at = kChecksum;
  while (first[at] == ' ' && at < kChecksum + 8) ++at;
  const std::size_t begin = at;
  for (; at < kChecksum + 8 && first[at] >= '0' && first[at] <= '7'; ++at) {
    stored = stored * 8 + static_cast<std::uint32_t>(first[at] - '0');
  }
  return at > begin && stored == sum;
}

/// A message that begins with its mark and the size of its metadata, a multiple of 8.
bool is_arrow_stream(std::string_view first) {
  const auto size = number_at<std::int32_t>(first, 4);
  return first.starts_with("\xFF\xFF\xFF\xFF") && size > 0 && size % 8 == 0;
}

bool is_llmc(std::string_view first) {
  const auto magic = number_at<std::int32_t>(first, 0);
  const auto version = number_at<std::int32_t>(first, 4);
  return (magic == llmc::kMagicU16 && version == llmc::kVersionU16) ||
         (magic == llmc::kMagicU32 && version == llmc::kVersionU32);
}

[[noreturn]] void reject(const std::string& name, const char* is, const char* cure) {
  throw ConfigError("", fmt::format("{}: is {}; legal: text, JSON lines, and tar, zip, gzip, zstd, "
                                    "xz or bzip2 of them; {}",
                                    name, is, cure));
}

}  // namespace

ContentKind kind_of(const std::string& name, std::span<const std::byte> bytes) {
  const std::string_view first(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const KnownKind& known : kKnownKinds) {
    if (first.starts_with(known.magic)) return known.kind;
  }
  if (is_skippable_frame(first)) return ContentKind::zstd;
  if (is_bzip2(first)) return ContentKind::bzip2;
  if (is_tar(first)) return ContentKind::tar;
  for (const ForeignKind& foreign : kForeignKinds) {
    if (begins_with(first, foreign.magic)) reject(name, foreign.is, foreign.cure);
  }
  if (is_arrow_stream(first)) reject(name, "an Arrow stream", kArrowStream);
  if (is_llmc(first)) reject(name, "a file of tokens", kLeaveOut);
  return ContentKind::text;
}

bool is_compressed(ContentKind kind) {
  return kind == ContentKind::gzip || kind == ContentKind::zstd || kind == ContentKind::xz ||
         kind == ContentKind::bzip2;
}

const char* name_of(ContentKind kind) {
  switch (kind) {
    case ContentKind::text:
      return "text";
    case ContentKind::gzip:
      return "gzip";
    case ContentKind::zstd:
      return "zstd";
    case ContentKind::xz:
      return "xz";
    case ContentKind::bzip2:
      return "bzip2";
    case ContentKind::tar:
      return "tar";
    case ContentKind::zip:
      return "zip";
  }
  __builtin_unreachable();
}

std::string stream_failure(const std::string& name, ContentKind kind, std::int64_t offset,
                           const std::string& reason) {
  return fmt::format("{}: its {} stream fails at byte {} of the file: {}", name, name_of(kind),
                     offset, reason);
}

}  // namespace redspine
