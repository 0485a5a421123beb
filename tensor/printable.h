// Text of any bytes as something that a terminal shows and nothing else. Whatever a message takes
// from a user, a file or the system passes through here, so that no file name moves a cursor and no
// value of three megabytes hides what is wrong with it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redspine {

inline constexpr std::size_t kMaxLine = 2000;   // bytes of a line of a message
inline constexpr std::size_t kMaxExcerpt = 96;  // bytes of a text that a line quotes

/// `text` in quotes, with line breaks, tabs, quotes and backslashes escaped as in C, and so are, as
/// \xHH, control characters and bytes that are no UTF-8.
std::string printable(std::string_view text);

/// The same of a short text; of a long one, the beginning and the end: `"The be[... 300 bytes
/// ...]he end"`.
std::string excerpt(std::string_view text);

/// `text` without quotes as one line, with line breaks, control characters and bytes that are no
/// UTF-8 escaped. From the middle of one that is longer than `max_bytes`, bytes are left out, and
/// counted.
std::string one_line(std::string_view text, std::size_t max_bytes = kMaxLine);

/// "1 rank", "2 ranks", for whole numbers.
template <class Number>
std::string counted(Number number, std::string_view noun) {
  std::string text = std::to_string(number);
  text += ' ';
  text += noun;
  if (number != 1) text += 's';
  return text;
}

/// one_line() for each line of `text`.
std::string printable_lines(std::string_view text);

}  // namespace redspine
