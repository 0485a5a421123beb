// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redspine {

/// Bytes of the longest prefix of `text` that is valid UTF-8.
std::size_t valid_utf8_prefix(std::string_view text);

struct CodePoint {
  char32_t value;
  std::size_t length;  // bytes
};

/// The code point at `at` of `text`, which is valid UTF-8.
inline CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [text, at](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

/// Why `text` can be no name or path of ours, which have to stand in JSON and in messages: "has the
/// byte 0xe9 at 3, which is no UTF-8", or the same of a NUL. Empty if it can.
std::string problem_in_name(std::string_view text);

void append_utf8(char32_t code_point, std::string& text);

}  // namespace redspine
