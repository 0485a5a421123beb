#include "data/files/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "data/files/document_index.h"
#include "tensor/error.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

constexpr const char* kHeaderlessHint =
    "a file of nothing but ids needs data.format raw_u16 or raw_u32";

constexpr std::size_t kBlockSize = std::size_t{1} << 14;  // bytes read at once, on the stack

template <typename T>
T read_number(const File& file, std::int64_t offset) {
  T value;
  file.read_at(offset, std::as_writable_bytes(std::span(&value, 1)));
  return value;
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

/// Calls `visit` with a value of the type that ids are stored in.
template <typename Visit>
void visit_type(TokenType type, const Visit& visit) {
  switch (type) {
    case TokenType::u8:
      return visit(std::uint8_t{});
    case TokenType::i8:
      return visit(std::int8_t{});
    case TokenType::i16:
      return visit(std::int16_t{});
    case TokenType::i32:
      return visit(std::int32_t{});
    case TokenType::i64:
      return visit(std::int64_t{});
    case TokenType::u16:
      return visit(std::uint16_t{});
    case TokenType::u32:
      return visit(std::uint32_t{});
  }
}

}  // namespace

TokenFile::TokenFile(File file, const Layout& layout, std::string key)
    : file_(std::move(file)), key_(std::move(key)), layout_(layout) {}

void TokenFile::read(std::int64_t offset, std::span<std::int32_t> tokens,
                     std::int64_t vocab_size) const {
  assert(offset >= 0 && offset <= num_tokens() &&
         static_cast<std::int64_t>(tokens.size()) <= num_tokens() - offset);
  assert(vocab_size >= 1 && vocab_size <= std::int64_t{1} << 31);
  visit_type(layout_.type, [&]<typename T>(T /*stored*/) {
    std::array<T, kBlockSize / sizeof(T)> block;
    for (std::span<std::int32_t> rest = tokens; !rest.empty();) {
      const std::span<T> ids = std::span(block).first(std::min(rest.size(), block.size()));
      read_bytes(offset, std::as_writable_bytes(ids));
      if (!convert(ids.data(), rest.first(ids.size()), vocab_size)) {
        const auto is_bad = [&](T id) {
          return !std::in_range<std::int32_t>(id) || id < T{0} ||
                 std::cmp_greater_equal(id, vocab_size);
        };
        const auto bad = std::find_if(ids.begin(), ids.end(), is_bad);
        throw ConfigError(key_, fmt::format("{}: token {} has id {}; legal with model.vocab_size "
                                            "{}: 0 to {}",
                                            path(), offset + (bad - ids.begin()), *bad, vocab_size,
                                            vocab_size - 1));
      }
      offset += static_cast<std::int64_t>(ids.size());
      rest = rest.subspan(ids.size());
    }
  });
}

void TokenFile::read_bytes(std::int64_t offset, std::span<std::byte> bytes) const {
  const std::int64_t begin = layout_.data_offset + offset * size_of(layout_.type);
  if (file_.read_up_to_end(begin, bytes) == bytes.size()) return;
  throw Error(fmt::format("{}: was {} when it was opened and is {} now", path(),
                          counted(layout_.data_offset + num_bytes(), "byte"), file_.size()));
}

TokenFile TokenFile::open_megatron(const std::string& prefix, const std::string& key) {
  const DocumentIndex index = DocumentIndex::open(prefix, key);
  File tokens = File::open(prefix + ".bin", key);
  const std::int64_t token_size = size_of(index.type());
  const std::int64_t size = tokens.size();
  index.check_ends(tokens.path(), size);
  if (size == 0 || size % token_size != 0) {
    throw ConfigError(key, fmt::format("{}: is {}; legal: a multiple of {}, above 0", tokens.path(),
                                       counted(size, "byte"), token_size));
  }
  return TokenFile(std::move(tokens),
                   {.format = TokenFormat::megatron,
                    .type = index.type(),
                    .data_offset = 0,
                    .num_tokens = size / token_size,
                    .num_documents = index.num_documents()},
                   key);
}

TokenFile TokenFile::open_llmc(const std::string& path, const std::string& key) {
  File file = File::open(path, key);
  const std::int64_t size = file.size();
  if (size < llmc::kHeaderSize) {
    throw ConfigError(key, fmt::format("{}: is {}; llm.c's header alone is {}", path,
                                       counted(size, "byte"), llmc::kHeaderSize));
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
    throw ConfigError(key, fmt::format("{}: is {}, but its header says {}, which take {} + {} x {}",
                                       path, counted(size, "byte"), counted(num_tokens, "token"),
                                       llmc::kHeaderSize, size_of(type), num_tokens));
  }
  return TokenFile(std::move(file),
                   {.format = TokenFormat::llmc,
                    .type = type,
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
        key, fmt::format("{}: is {}; legal for this data.format: a multiple of {}, above 0", path,
                         counted(size, "byte"), size_of(type)));
  }
  return TokenFile(std::move(file),
                   {.format = type == TokenType::u16 ? TokenFormat::raw_u16 : TokenFormat::raw_u32,
                    .type = type,
                    .data_offset = 0,
                    .num_tokens = size / size_of(type),
                    .num_documents = 0},
                   key);
}

TokenFile TokenFile::open(const std::string& path, TokenFormat format, const std::string& key) {
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
  if (exists(path + ".idx", key) || exists(path + ".bin", key)) return open_megatron(path, key);
  const std::filesystem::path as_path(path);
  if (as_path.extension() == ".bin" || as_path.extension() == ".idx") {
    std::filesystem::path prefix = as_path;
    prefix.replace_extension();
    if (exists(prefix.string() + ".bin", key) && exists(prefix.string() + ".idx", key)) {
      throw ConfigError(key, fmt::format("{}: is half of a Megatron pair, which is named by its "
                                         "prefix: {}",
                                         path, prefix.string()));
    }
  }
  return open_llmc(path, key);
}

}  // namespace redspine
