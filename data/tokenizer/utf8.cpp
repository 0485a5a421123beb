#include "data/tokenizer/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace redspine {
namespace {

/// Bytes of the valid sequence at the start of `text`; 0 if there is none. Table 3-7 of the Unicode
/// standard.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto is_continuation = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return is_continuation(1) ? 2 : 0;

  unsigned lowest = 0x80;
  unsigned highest = 0xBF;
  if (first == 0xE0) lowest = 0xA0;   // overlong
  if (first == 0xED) highest = 0x9F;  // surrogates
  if (first == 0xF0) lowest = 0x90;   // overlong
  if (first == 0xF4) highest = 0x8F;  // above U+10FFFF
  if (byte(1) < lowest || byte(1) > highest || !is_continuation(2)) return 0;
  if (first < 0xF0) return 3;
  return is_continuation(3) ? 4 : 0;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t word = 0;
    while (at + sizeof(word) <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof(word));
      if ((word & kHighBits) != 0) break;
      at += sizeof(word);
    }
    if (at == text.size()) break;
    const std::size_t length = sequence_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string problem_in_name(std::string_view text) {
  const std::size_t nul = text.find('\0');
  const std::size_t valid = valid_utf8_prefix(text);
  if (nul < valid) return fmt::format("has a NUL at byte {}", nul);
  if (valid == text.size()) return "";
  return fmt::format("has the byte 0x{:02x} at {}, which is no UTF-8",
                     static_cast<unsigned char>(text[valid]), valid);
}

void append_utf8(char32_t code_point, std::string& text) {
  const auto add = [&text](char32_t byte) { text += static_cast<char>(byte); };
  const auto continuation = [code_point](int shift) { return 0x80 | (code_point >> shift & 0x3F); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xC0 | code_point >> 6);
    add(continuation(0));
  } else if (code_point < 0x10000) {
    add(0xE0 | code_point >> 12);
    add(continuation(6));
    add(continuation(0));
  } else {
    add(0xF0 | code_point >> 18);
    add(continuation(12));
    add(continuation(6));
    add(continuation(0));
  }
}

}  // namespace redspine
