#include "data/token_file.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "tensor/error.h"

namespace redspine {
namespace {

constexpr const char* kHeaderlessHint =
    "a file of nothing but ids needs data.format raw_u16 or raw_u32";

/// A number of the header, which is little-endian as this machine is.
template <typename T>
T load(std::span<const std::byte> bytes, std::int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
T read_number(const File& file, std::int64_t offset) {
  std::array<std::byte, sizeof(T)> bytes;
  file.read_at(offset, bytes);
  return load<T>(bytes, 0);
}

std::optional<TokenType> type_of_megatron_code(std::uint8_t code) {
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

struct MegatronHeader {
  TokenType type;
  std::int64_t num_sequences;
  std::int64_t num_document_indices;
};

MegatronHeader read_megatron_header(const File& index, const std::string& key) {
  const std::int64_t size = index.size();
  if (size < megatron::kHeaderSize) {
    throw ConfigError(key, fmt::format("{}: is {} bytes; a Megatron index has at least {}",
                                       index.path(), size, megatron::kHeaderSize));
  }
  std::array<std::byte, megatron::kHeaderSize> header;
  index.read_at(0, header);
  if (std::memcmp(header.data(), megatron::kMagic.data(), megatron::kMagic.size()) != 0) {
    throw ConfigError(key, fmt::format("{}: begins with {:02x}; a Megatron index begins with "
                                       "MMIDIDX and two zero bytes",
                                       index.path(), fmt::join(std::span(header).first<9>(), " ")));
  }
  const auto version = load<std::uint64_t>(header, 9);
  if (version != megatron::kVersion) {
    throw ConfigError(key, fmt::format("{}: is of version {}; legal: {}", index.path(), version,
                                       megatron::kVersion));
  }
  const auto code = load<std::uint8_t>(header, 17);
  const std::optional<TokenType> type = type_of_megatron_code(code);
  if (!type) {
    throw ConfigError(key, fmt::format("{}: has type code {}; legal for token ids: 1 (u8), 2 (i8), "
                                       "3 (i16), 4 (i32), 5 (i64), 8 (u16)",
                                       index.path(), code));
  }
  // Compared as unsigned and by division, so that no number of a damaged header can overflow.
  const auto num_sequences = load<std::uint64_t>(header, 18);
  const auto num_indices = load<std::uint64_t>(header, 26);
  const auto rest = static_cast<std::uint64_t>(size - megatron::kHeaderSize);
  if (num_sequences > rest / 12 || num_indices != (rest - 12 * num_sequences) / 8 ||
      (rest - 12 * num_sequences) % 8 != 0) {
    throw ConfigError(key, fmt::format("{}: is {} bytes, but its header tells of {} sequences and "
                                       "{} document indices, which take 34 + 12 x {} + 8 x {}",
                                       index.path(), size, num_sequences, num_indices,
                                       num_sequences, num_indices));
  }
  if (num_sequences == 0 || num_indices < 2) {
    throw ConfigError(
        key, fmt::format("{}: holds {} sequences in {} documents; nothing to read", index.path(),
                         num_sequences, num_indices == 0 ? 0 : num_indices - 1));
  }
  return {*type, static_cast<std::int64_t>(num_sequences), static_cast<std::int64_t>(num_indices)};
}

/// Converts to int32; false if an id is not in [0, limit), limit <= 2^31.
template <typename T>
bool convert(const T* ids, std::span<std::int32_t> tokens, std::int64_t limit) {
  // Sign-extended and then read as unsigned, a negative id is larger than any limit.
  using Signed = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  using Unsigned = std::make_unsigned_t<Signed>;
  Unsigned largest = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<Signed>(ids[i]);  // NOLINT(bugprone-signed-char-misuse): see above
    largest = std::max(largest, static_cast<Unsigned>(id));
    tokens[i] = static_cast<std::int32_t>(id);
  }
  return largest < static_cast<Unsigned>(limit);
}

/// Calls `visit` with the mapped ids as what they are.
template <typename Visit>
void visit_ids(TokenType type, const std::byte* ids, const Visit& visit) {
  switch (type) {
    case TokenType::u8:
      return visit(reinterpret_cast<const std::uint8_t*>(ids));
    case TokenType::i8:
      return visit(reinterpret_cast<const std::int8_t*>(ids));
    case TokenType::i16:
      return visit(reinterpret_cast<const std::int16_t*>(ids));
    case TokenType::i32:
      return visit(reinterpret_cast<const std::int32_t*>(ids));
    case TokenType::i64:
      return visit(reinterpret_cast<const std::int64_t*>(ids));
    case TokenType::u16:
      return visit(reinterpret_cast<const std::uint16_t*>(ids));
    case TokenType::u32:
      return visit(reinterpret_cast<const std::uint32_t*>(ids));
  }
}

}  // namespace

TokenFile::TokenFile(File file, const Layout& layout, std::string key)
    : file_(std::move(file)),
      key_(std::move(key)),
      type_(layout.type),
      data_offset_(layout.data_offset),
      num_tokens_(layout.num_tokens),
      num_documents_(layout.num_documents),
      map_(nullptr) {
  const auto size = static_cast<std::size_t>(data_offset_ + num_bytes());
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
  if (map == MAP_FAILED) {
    throw Error(fmt::format("{}: mapping {} bytes failed: {}", path(), size, std::strerror(errno)));
  }
  map_ = map;
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : file_(std::move(other.file_)),
      key_(std::move(other.key_)),
      type_(other.type_),
      data_offset_(other.data_offset_),
      num_tokens_(other.num_tokens_),
      num_documents_(other.num_documents_),
      map_(std::exchange(other.map_, nullptr)) {}

TokenFile::~TokenFile() {
  if (map_ != nullptr) ::munmap(map_, static_cast<std::size_t>(data_offset_ + num_bytes()));
}

void TokenFile::read(std::int64_t offset, std::span<std::int32_t> tokens,
                     std::int64_t vocab_size) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  assert(offset >= 0 && count <= num_tokens_ && offset <= num_tokens_ - count);
  assert(vocab_size >= 1 && vocab_size <= std::int64_t{1} << 31);
  const std::int64_t begin = data_offset_ + offset * size_of(type_);
  const std::int64_t size_now = file_.size();
  if (size_now < begin + count * size_of(type_)) {
    throw Error(fmt::format("{}: was {} bytes when it was opened and is {} now", path(),
                            data_offset_ + num_bytes(), size_now));
  }
  visit_ids(type_, static_cast<const std::byte*>(map_) + begin, [&](const auto* ids) {
    if (convert(ids, tokens, vocab_size)) return;
    for (std::int64_t i = 0;; ++i) {
      const std::int64_t id = ids[i];  // NOLINT(bugprone-signed-char-misuse): i8 is a number here
      if (id >= 0 && id < vocab_size) continue;
      throw ConfigError(key_,
                        fmt::format("{}: token {} has id {}; legal with model.vocab_size {}: 0 "
                                    "to {}",
                                    path(), offset + i, id, vocab_size, vocab_size - 1));
    }
  });
}

TokenFile TokenFile::open_megatron(const std::string& prefix, const std::string& key) {
  const File index = File::open(prefix + ".idx", key);
  File tokens = File::open(prefix + ".bin", key);
  const MegatronHeader header = read_megatron_header(index, key);
  const std::int64_t token_size = size_of(header.type);
  const std::int64_t size = tokens.size();
  // Of the lists, their ends are enough: what is read is the .bin as one stream of tokens.
  const std::int64_t lengths = megatron::kHeaderSize;
  const std::int64_t offsets = lengths + 4 * header.num_sequences;
  const std::int64_t documents = offsets + 8 * header.num_sequences;
  const auto last_length = read_number<std::int32_t>(index, offsets - 4);
  const auto last_offset = read_number<std::int64_t>(index, documents - 8);
  const auto first_offset = read_number<std::int64_t>(index, offsets);
  if (first_offset != 0 || last_length < 0 || last_offset < 0 ||
      last_offset > std::numeric_limits<std::int64_t>::max() / 2 ||
      last_offset + last_length * token_size != size) {
    throw ConfigError(
        key, fmt::format("{}: is {} bytes, but {} puts its first sequence at byte {} and its last, "
                         "of {} tokens of {} bytes, at byte {}; the two are not a pair",
                         tokens.path(), size, index.path(), first_offset, last_length, token_size,
                         last_offset));
  }
  const auto last_index =
      read_number<std::int64_t>(index, documents + 8 * (header.num_document_indices - 1));
  if (last_index != header.num_sequences) {
    throw ConfigError(key, fmt::format("{}: its document index ends with {}; legal: its number of "
                                       "sequences, {}",
                                       index.path(), last_index, header.num_sequences));
  }
  if (size == 0 || size % token_size != 0) {
    throw ConfigError(key, fmt::format("{}: is {} bytes; legal: a multiple of {}, above 0",
                                       tokens.path(), size, token_size));
  }
  return TokenFile(std::move(tokens),
                   {.type = header.type,
                    .data_offset = 0,
                    .num_tokens = size / token_size,
                    .num_documents = header.num_document_indices - 1},
                   key);
}

TokenFile TokenFile::open_llmc(const std::string& path, const std::string& key) {
  File file = File::open(path, key);
  const std::int64_t size = file.size();
  if (size < llmc::kHeaderSize) {
    throw ConfigError(key, fmt::format("{}: is {} bytes; llm.c's header alone is {}", path, size,
                                       llmc::kHeaderSize));
  }
  const auto magic = read_number<std::int32_t>(file, 0);
  if (magic != llmc::kMagicU16 && magic != llmc::kMagicU32) {
    throw ConfigError(key,
                      fmt::format("{}: has magic number {}; legal for llm.c: {} (u16), {} "
                                  "(u32); {}",
                                  path, magic, llmc::kMagicU16, llmc::kMagicU32, kHeaderlessHint));
  }
  const bool is_u16 = magic == llmc::kMagicU16;
  const auto version = read_number<std::int32_t>(file, 4);
  const std::int32_t legal_version = is_u16 ? llmc::kVersionU16 : llmc::kVersionU32;
  if (version != legal_version) {
    throw ConfigError(key, fmt::format("{}: is of version {}; legal with magic number {}: {}", path,
                                       version, magic, legal_version));
  }
  const TokenType type = is_u16 ? TokenType::u16 : TokenType::u32;
  const auto num_tokens = read_number<std::int32_t>(file, 8);
  if (num_tokens <= 0 || llmc::kHeaderSize + num_tokens * size_of(type) != size) {
    throw ConfigError(
        key, fmt::format("{}: is {} bytes, but its header tells of {} tokens, which "
                         "take {} + {} x {}",
                         path, size, num_tokens, llmc::kHeaderSize, size_of(type), num_tokens));
  }
  return TokenFile(std::move(file),
                   {.type = type,
                    .data_offset = llmc::kHeaderSize,
                    .num_tokens = num_tokens,
                    .num_documents = 0},
                   key);
}

TokenFile TokenFile::open_raw(const std::string& path, TokenType type, const std::string& key) {
  File file = File::open(path, key);
  const std::int64_t size = file.size();
  if (size == 0 || size % size_of(type) != 0) {
    throw ConfigError(
        key, fmt::format("{}: is {} bytes; legal for this data.format: a multiple of {}, above 0",
                         path, size, size_of(type)));
  }
  return TokenFile(
      std::move(file),
      {.type = type, .data_offset = 0, .num_tokens = size / size_of(type), .num_documents = 0},
      key);
}

TokenFile TokenFile::open(const std::string& path, TokenFormat format, const std::string& key) {
  namespace fs = std::filesystem;
  switch (format) {
    case TokenFormat::automatic:
      break;
    case TokenFormat::megatron:
      return open_megatron(path, key);
    case TokenFormat::llmc:
      return open_llmc(path, key);
    case TokenFormat::raw_u16:
      return open_raw(path, TokenType::u16, key);
    case TokenFormat::raw_u32:
      return open_raw(path, TokenType::u32, key);
  }
  if (fs::exists(path + ".idx") || fs::exists(path + ".bin")) return open_megatron(path, key);
  const fs::path as_path(path);
  if (as_path.extension() == ".bin" || as_path.extension() == ".idx") {
    fs::path prefix = as_path;
    prefix.replace_extension();
    if (fs::exists(prefix.string() + ".bin") && fs::exists(prefix.string() + ".idx")) {
      throw ConfigError(key, fmt::format("{}: is half of a Megatron pair, which is named by its "
                                         "prefix: {}",
                                         path, prefix.string()));
    }
  }
  return open_llmc(path, key);
}

}  // namespace redspine
