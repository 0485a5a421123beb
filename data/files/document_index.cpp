#include "data/files/document_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tensor/error.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

constexpr std::int64_t kBlockLength = std::int64_t{1} << 14;  // entries read at once
constexpr std::int64_t kMaxToken = std::int64_t{1} << 62;     // no file has as many

/// A number of the header, which is little-endian as this machine is.
template <typename T>
T load(std::span<const std::byte> bytes, std::int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
T read_number(const File& file, std::int64_t offset) {
  T value;
  file.read_at(offset, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::optional<TokenType> type_of_code(std::uint8_t code) {
  switch (code) {
    case 1:
      return TokenType::u8;
    case 2:
      return TokenType::i8;
    case 3:
      return TokenType::i16;
    case megatron::kCodeOfI32:
      return TokenType::i32;
    case 5:
      return TokenType::i64;
    case megatron::kCodeOfU16:
      return TokenType::u16;
    default:
      return std::nullopt;
  }
}

/// The largest `index` of [0, count) for which value_at(index) <= wanted, where values do not fall;
/// 0 if there is none.
template <typename ValueAt>
std::int64_t last_not_above(std::int64_t count, std::int64_t wanted, const ValueAt& value_at) {
  std::int64_t begin = 0;
  std::int64_t end = count;
  while (end - begin > 1) {
    const std::int64_t middle = begin + (end - begin) / 2;
    (value_at(middle) <= wanted ? begin : end) = middle;
  }
  return begin;
}

}  // namespace

DocumentIndex DocumentIndex::open(const std::string& prefix, const std::string& key) {
  DocumentIndex index(File::open(prefix + ".idx", key), key);
  index.read_header();
  return index;
}

void DocumentIndex::read_header() {
  const std::int64_t size = file_.size();
  if (size < megatron::kHeaderSize) {
    throw ConfigError(key_, fmt::format("{}: is {}; a Megatron index has at least {}", file_.path(),
                                        counted(size, "byte"), megatron::kHeaderSize));
  }
  std::array<std::byte, megatron::kHeaderSize> header;
  file_.read_at(0, header);
  if (std::memcmp(header.data(), megatron::kMagic.data(), megatron::kMagic.size()) != 0) {
    throw ConfigError(key_,
                      fmt::format("{}: begins with {:02x}; a Megatron index begins with "
                                  "MMIDIDX and two zero bytes",
                                  file_.path(), fmt::join(std::span(header).first<9>(), " ")));
  }
  const auto version = load<std::uint64_t>(header, 9);
  if (version != megatron::kVersion) {
    throw ConfigError(key_, fmt::format("{}: is of version {}; legal: {}", file_.path(), version,
                                        megatron::kVersion));
  }
  const auto code = load<std::uint8_t>(header, 17);
  const std::optional<TokenType> type = type_of_code(code);
  if (!type) {
    throw ConfigError(key_,
                      fmt::format("{}: has type code {}; legal for token ids: 1 (u8), 2 (i8), "
                                  "3 (i16), 4 (i32), 5 (i64), 8 (u16)",
                                  file_.path(), code));
  }
  // Compared as unsigned and by division, so that no number of a damaged header can overflow.
  const auto num_sequences = load<std::uint64_t>(header, 18);
  const auto num_indices = load<std::uint64_t>(header, 26);
  const auto rest = static_cast<std::uint64_t>(size - megatron::kHeaderSize);
  if (num_sequences > rest / 12 || num_indices != (rest - 12 * num_sequences) / 8 ||
      (rest - 12 * num_sequences) % 8 != 0) {
    throw ConfigError(
        key_,
        fmt::format(
            "{}: is {}, but its header says {} and {}, which take 34 + 12 x {} + 8 x {}",
            file_.path(), counted(size, "byte"), counted(num_sequences, "sequence"),
            num_indices == 1 ? "1 document index" : fmt::format("{} document indices", num_indices),
            num_sequences, num_indices));
  }
  if (num_sequences == 0 || num_indices < 2) {
    throw ConfigError(key_, fmt::format("{}: holds no {}; nothing to read", file_.path(),
                                        num_sequences == 0 ? "sequences" : "documents"));
  }
  type_ = *type;
  num_sequences_ = static_cast<std::int64_t>(num_sequences);
  num_document_indices_ = static_cast<std::int64_t>(num_indices);
}

std::int32_t DocumentIndex::length(std::int64_t sequence) const {
  return read_number<std::int32_t>(file_, megatron::kHeaderSize + 4 * sequence);
}

std::int64_t DocumentIndex::offset(std::int64_t sequence) const {
  return read_number<std::int64_t>(file_,
                                   megatron::kHeaderSize + 4 * num_sequences_ + 8 * sequence);
}

std::int64_t DocumentIndex::first_sequence(std::int64_t document) const {
  return read_number<std::int64_t>(file_,
                                   megatron::kHeaderSize + 12 * num_sequences_ + 8 * document);
}

void DocumentIndex::check_ends(const std::string& bin_path, std::int64_t size) const {
  const std::int64_t first_offset = offset(0);
  const std::int64_t last_offset = offset(num_sequences_ - 1);
  const std::int32_t last_length = length(num_sequences_ - 1);
  if (first_offset != 0 || last_length < 0 || last_offset < 0 ||
      last_offset > std::numeric_limits<std::int64_t>::max() / 2 ||
      last_offset + last_length * size_of(type_) != size) {
    throw ConfigError(
        key_,
        fmt::format("{}: is {}, but {} puts its first sequence at byte {} and its "
                    "last, of {} of {}, at byte {}; the two are not a pair",
                    bin_path, counted(size, "byte"), file_.path(), first_offset,
                    counted(last_length, "token"), counted(size_of(type_), "byte"), last_offset));
  }
  const std::int64_t last_index = first_sequence(num_documents());
  if (last_index != num_sequences_) {
    throw ConfigError(key_, fmt::format("{}: its document index ends with {}; legal: its number of "
                                        "sequences, {}",
                                        file_.path(), last_index, num_sequences_));
  }
}

void DocumentIndex::check_all() const {
  std::vector<std::int32_t> lengths(kBlockLength);
  std::vector<std::int64_t> offsets(kBlockLength);
  std::int64_t expected = 0;
  for (std::int64_t begin = 0; begin < num_sequences_; begin += kBlockLength) {
    const auto count = static_cast<std::size_t>(std::min(kBlockLength, num_sequences_ - begin));
    file_.read_at(megatron::kHeaderSize + 4 * begin,
                  std::as_writable_bytes(std::span(lengths).first(count)));
    file_.read_at(megatron::kHeaderSize + 4 * num_sequences_ + 8 * begin,
                  std::as_writable_bytes(std::span(offsets).first(count)));
    for (std::size_t i = 0; i < count; ++i) {
      if (offsets[i] != expected || lengths[i] < 0) {
        throw ConfigError(
            key_, fmt::format("{}: puts sequence {}, of {}, at byte {}; legal: 0 tokens and more, "
                              "at byte {}",
                              file_.path(), begin + static_cast<std::int64_t>(i),
                              counted(lengths[i], "token"), offsets[i], expected));
      }
      expected += lengths[i] * size_of(type_);
    }
  }
  std::int64_t last = 0;
  for (std::int64_t begin = 0; begin < num_document_indices_; begin += kBlockLength) {
    const auto count =
        static_cast<std::size_t>(std::min(kBlockLength, num_document_indices_ - begin));
    file_.read_at(megatron::kHeaderSize + 12 * num_sequences_ + 8 * begin,
                  std::as_writable_bytes(std::span(offsets).first(count)));
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t document = begin + static_cast<std::int64_t>(i);
      if (offsets[i] < last || offsets[i] > num_sequences_ || (document == 0 && offsets[i] != 0)) {
        throw ConfigError(key_, fmt::format("{}: lets document {} begin with sequence {}; legal: "
                                            "{} to {}",
                                            file_.path(), document, offsets[i], last,
                                            document == 0 ? 0 : num_sequences_));
      }
      last = offsets[i];
    }
  }
}

DocumentIndex::Document DocumentIndex::document_at(std::int64_t token) const {
  const std::int64_t byte = token * size_of(type_);
  const std::int64_t sequence =
      last_not_above(num_sequences_, byte, [&](std::int64_t s) { return offset(s); });
  const std::int64_t document = last_not_above(num_document_indices_, sequence,
                                               [&](std::int64_t d) { return first_sequence(d); });
  if (document < num_documents()) {
    const std::int64_t first = first_sequence(document);
    const std::int64_t end = first_sequence(document + 1);
    if (first >= 0 && first <= sequence && sequence < end && end <= num_sequences_) {
      const std::int64_t begin_byte = offset(first);
      const std::int64_t begin = begin_byte / size_of(type_);
      const std::int64_t last_begin = offset(end - 1) / size_of(type_);
      // Bounded first: no sum of damaged entries may overflow.
      if (begin_byte >= 0 && begin <= token && begin <= last_begin && last_begin <= kMaxToken &&
          token < last_begin + length(end - 1)) {
        return {.number = document, .begin = begin, .end = last_begin + length(end - 1)};
      }
    }
  }
  throw Error(
      fmt::format("{}: its entries around token {} contradict each other; `redspine "
                  "tokenize --verify` names the first wrong one",
                  file_.path(), token));
}

}  // namespace redspine
