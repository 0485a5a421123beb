#include "tensor/printable.h"

#include <fmt/format.h>

#include <cstddef>

namespace redspine {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

/// Bytes of the UTF-8 character at the beginning of `text`, which is not ASCII; 0 if it is none.
/// The table of well-formed sequences is Unicode's, chapter 3, D92.
std::size_t character_size(std::string_view text) {
  const unsigned char lead = byte_at(text, 0);
  const std::size_t size = lead >= 0xC2 && lead <= 0xDF   ? 2
                           : lead >= 0xE0 && lead <= 0xEF ? 3
                           : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                          : 0;
  if (size == 0 || text.size() < size) return 0;
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte_at(text, 1) < low || byte_at(text, 1) > high) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  // U+0080 to U+009F are control characters too.
  return lead == 0xC2 && byte_at(text, 1) < 0xA0 ? 0 : size;
}

std::string escape(unsigned char byte) {
  switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    default:
      return fmt::format("\\x{:02x}", byte);
  }
}

/// What is to be escaped besides control characters and bytes that are no UTF-8.
enum class Escapes { in_quotes, in_lines };

std::string escaped(std::string_view text, Escapes escapes) {
  std::string line;
  while (!text.empty()) {
    const unsigned char byte = byte_at(text, 0);
    const bool is_syntax = escapes == Escapes::in_quotes && (byte == '"' || byte == '\\');
    const std::size_t size = byte < 0x80 ? 1 : character_size(text);
    if (size == 0 || byte < 0x20 || byte == 0x7F || is_syntax) {
      line += escape(byte);
      text.remove_prefix(1);
    } else {
      line += text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return line;
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// escaped(), without the middle of a text of more than `max_bytes`.
std::string shortened(std::string_view text, std::size_t max_bytes, Escapes escapes) {
  constexpr std::size_t kMark = 32;  // bytes of what is said of the middle, at most
  if (text.size() <= max_bytes) return escaped(text, escapes);
  // What is wrong stands more often at the beginning.
  std::size_t begin = (max_bytes - kMark) * 2 / 3;
  std::size_t end = text.size() - (max_bytes - kMark - begin);
  while (begin > 0 && continues_character(text[begin])) --begin;
  while (end < text.size() && continues_character(text[end])) ++end;
  return fmt::format("{}[... {} bytes ...]{}", escaped(text.substr(0, begin), escapes), end - begin,
                     escaped(text.substr(end), escapes));
}

}  // namespace

std::string printable(std::string_view text) {
  return '"' + escaped(text, Escapes::in_quotes) + '"';
}

std::string excerpt(std::string_view text) {
  return '"' + shortened(text, kMaxExcerpt, Escapes::in_quotes) + '"';
}

std::string one_line(std::string_view text, std::size_t max_bytes) {
  return shortened(text, max_bytes, Escapes::in_lines);
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  for (;;) {
    const std::size_t end = text.find('\n');
    lines += one_line(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace redspine
