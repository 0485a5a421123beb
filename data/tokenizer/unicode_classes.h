// The Unicode classes that pre-tokenizers distinguish: \p{L}, \p{N} and \s, one of which a code
// point is at most.
//
// Unicode 16.0, as in the regex engines of tiktoken and Hugging Face's tokenizers; engines of an
// older Unicode see letters of newer scripts as punctuation, which changes token ids.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace redspine {

enum class CharClass : std::uint8_t {
  other,
  letter,
  number,
  space,
  part,  // not of a code point: a byte of the UTF-8 of one above U+007F
};

class UnicodeClasses {
 public:
  /// The one immutable table, made at the first call.
  static const UnicodeClasses& table();

  /// `code_point` is below 0x110000.
  CharClass of(char32_t code_point) const { return classes_[code_point]; }
  CharClass of_byte(char byte) const { return of_bytes_[static_cast<unsigned char>(byte)]; }

 private:
  UnicodeClasses();

  std::vector<CharClass> classes_;            // [code point]
  std::array<CharClass, 256> of_bytes_ = {};  // [byte]
};

/// First and last code point of a run of one class.
struct CodePointRange {
  char32_t first;
  char32_t last;
};

std::span<const CodePointRange> letter_ranges();
std::span<const CodePointRange> number_ranges();
std::span<const CodePointRange> space_ranges();
std::span<const CodePointRange> word_ranges();

/// \w: letters, marks, decimal digits, and what joins words.
bool is_word_character(char32_t code_point);

}  // namespace redspine
