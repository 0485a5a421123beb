#include "data/tokenizer/unicode_classes.h"

#include <algorithm>

namespace redspine {

const UnicodeClasses& UnicodeClasses::table() {
  static const UnicodeClasses kTable;
  return kTable;
}

UnicodeClasses::UnicodeClasses() : classes_(0x110000, CharClass::other) {
  const auto set = [this](std::span<const CodePointRange> ranges, CharClass value) {
    for (const CodePointRange& range : ranges) {
      std::fill(classes_.begin() + range.first, classes_.begin() + range.last + 1, value);
    }
  };
  set(letter_ranges(), CharClass::letter);
  set(number_ranges(), CharClass::number);
  set(space_ranges(), CharClass::space);
  of_bytes_.fill(CharClass::part);
  std::copy_n(classes_.begin(), 0x80, of_bytes_.begin());
}

bool is_word_character(char32_t code_point) {
  const std::span<const CodePointRange> ranges = word_ranges();
  const auto range =
      std::lower_bound(ranges.begin(), ranges.end(), code_point,
                       [](const CodePointRange& r, char32_t value) { return r.last < value; });
  return range != ranges.end() && range->first <= code_point;
}

}  // namespace redspine
