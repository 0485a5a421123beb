// The formats of token files, the integer types that token ids are stored in, and the constants of
// the two formats that have headers. Shared by those who read token files and those who write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/enum_words.h"

namespace redspine {

/// How token ids lie in a file; token_file.h describes each.
enum class TokenFormat {
  automatic,  // megatron where PATH.bin and PATH.idx exist, llmc where the file has its magic
  megatron,   // a .bin and .idx pair, named by their common prefix
  llmc,       // llm.c's .bin: a header of 1024 bytes, then u16 or u32
  raw_u16,    // nothing but little-endian 16-bit ids
  raw_u32,    // nothing but little-endian 32-bit ids
};
template <>
inline constexpr auto kEnumWords<TokenFormat> = std::to_array<EnumWord<TokenFormat>>({
    {TokenFormat::automatic, "auto"},
    {TokenFormat::megatron, "megatron"},
    {TokenFormat::llmc, "llmc"},
    {TokenFormat::raw_u16, "raw_u16"},
    {TokenFormat::raw_u32, "raw_u32"},
});

enum class TokenType { u8, i8, i16, i32, i64, u16, u32 };

/// Bytes of one token.
constexpr std::int64_t size_of(TokenType type) {
  switch (type) {
    case TokenType::u8:
    case TokenType::i8:
      return 1;
    case TokenType::i16:
    case TokenType::u16:
      return 2;
    case TokenType::i32:
    case TokenType::u32:
      return 4;
    case TokenType::i64:
      return 8;
  }
  __builtin_unreachable();
}

/// The .idx of Megatron-LM (its `indexed_dataset.py`), little-endian and unaligned:
///   9 bytes magic; u64 version; u8 type code; u64 number of sequences S; u64 length of the
///   document index (documents + 1); then i32 [S] tokens of each sequence; i64 [S] its byte offset
///   in the .bin; i64 [documents + 1] the first sequence of each document and, last, S.
/// The .bin holds nothing but tokens.
namespace megatron {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr std::uint64_t kVersion = 1;
constexpr std::int64_t kHeaderSize = 9 + 8 + 1 + 8 + 8;  // bytes
constexpr std::uint8_t kCodeOfI32 = 4;
constexpr std::uint8_t kCodeOfU16 = 8;

}  // namespace megatron

/// llm.c's .bin: i32 [256] header (magic, version, number of tokens), then the tokens.
namespace llmc {

constexpr std::int64_t kHeaderSize = 1024;  // bytes
constexpr std::int32_t kMagicU16 = 20240520;
constexpr std::int32_t kVersionU16 = 1;
constexpr std::int32_t kMagicU32 = 20240801;
constexpr std::int32_t kVersionU32 = 7;

}  // namespace llmc
}  // namespace redspine
