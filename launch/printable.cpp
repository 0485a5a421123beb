#include "launch/printable.h"

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

}  // namespace

std::string printable(std::string_view text) {
  std::string line = "\"";
  while (!text.empty()) {
    const unsigned char byte = byte_at(text, 0);
    std::size_t size = 1;
    if (byte >= 0x80) size = character_size(text);
    if (size == 0 || byte < 0x20 || byte == 0x7F || byte == '"' || byte == '\\') {
      line += escape(byte);
      size = 1;
    } else {
      line += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return line + '"';
}

}  // namespace redspine
