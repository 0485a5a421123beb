#include "data/tokenizer/pattern_splitter.h"

#include <algorithm>
#include <array>

#include "data/tokenizer/unicode_classes.h"
#include "data/tokenizer/utf8.h"

namespace redspine {
namespace {

/// What both kinds of pattern share: runs of one class.
class ClassScanner {
 public:
  CharClass class_at(std::string_view text, std::size_t at) const {
    const CharClass of_byte = classes_.of_byte(text[at]);
    return of_byte == CharClass::part ? classes_.of(code_point_at(text, at).value) : of_byte;
  }

  /// One past the run of `wanted` characters that starts at `at`; `at` if there is none.
  std::size_t run_end(std::string_view text, std::size_t at, CharClass wanted) const {
    while (true) {
      while (at < text.size() && classes_.of_byte(text[at]) == wanted) ++at;
      if (at == text.size() || classes_.of_byte(text[at]) != CharClass::part) return at;
      const CodePoint code_point = code_point_at(text, at);
      if (classes_.of(code_point.value) != wanted) return at;
      at += code_point.length;
    }
  }

  /// The class of the character that ends at `end` > 0 of any bytes; bytes that are no UTF-8 are
  /// pieces of their own, like punctuation between spaces.
  CharClass class_before(std::string_view text, std::size_t end) const {
    const std::size_t nearest = end - std::min<std::size_t>(end, 4);
    for (std::size_t at = end; at-- > nearest;) {
      const std::string_view character = text.substr(at, end - at);
      if (valid_utf8_prefix(character) == character.size()) return class_at(text, at);
    }
    return CharClass::other;
  }

  /// `\s+(?!\S)|\s+` from white space on: leaves the last one to the word that follows.
  std::size_t space_end(std::string_view text, std::size_t begin) const {
    const std::size_t end = run_end(text, begin, CharClass::space);
    if (end == text.size()) return end;
    std::size_t last = end - 1;
    while ((text[last] & 0xC0) == 0x80) --last;
    return last == begin ? end : last;
  }

 private:
  const UnicodeClasses& classes_ = UnicodeClasses::table();
};

bool is_one_of(char letter, std::string_view letters) {
  return letters.find(letter) != std::string_view::npos;
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
}

/// Bytes of what follows an apostrophe in `'s|'t|'re|'ve|'m|'ll|'d`; 0 if nothing does.
std::size_t contraction_length(char first, char second) {
  if (is_one_of(first, "stmd")) return 1;
  if (second == 'e' && (first == 'r' || first == 'v')) return 2;
  return first == 'l' && second == 'l' ? 2 : 0;
}

class Gpt2Splitter final : public Splitter {
 public:
  std::size_t piece_end(std::string_view text, std::size_t begin) override {
    if (text[begin] == '\'' && begin + 1 < text.size()) {
      const char second = begin + 2 < text.size() ? text[begin + 2] : ' ';
      const std::size_t length = contraction_length(text[begin + 1], second);
      if (length > 0) return begin + 1 + length;
    }
    const bool leads = text[begin] == ' ' && begin + 1 < text.size();
    const std::size_t word = begin + (leads ? 1 : 0);
    const CharClass kind = scanner_.class_at(text, word);
    return kind == CharClass::space ? scanner_.space_end(text, begin)
                                    : scanner_.run_end(text, word, kind);
  }

  /// No piece has white space after anything else.
  std::size_t cut_point(std::string_view text) const override {
    for (std::size_t at = text.size(); at-- > 1;) {
      const bool is_space = is_one_of(text[at], " \n");
      if (is_space && scanner_.class_before(text, at) != CharClass::space) return at;
    }
    return 0;
  }

 private:
  ClassScanner scanner_;
};

enum class SpaceAtEnd { as_elsewhere, one_piece };

class Cl100kSplitter final : public Splitter {
 public:
  explicit Cl100kSplitter(SpaceAtEnd space_at_end) : space_at_end_(space_at_end) {}

  std::size_t piece_end(std::string_view text, std::size_t begin) override {
    if (text[begin] == '\'') {
      const std::size_t length = contraction_at(text.substr(begin + 1));
      if (length > 0) return begin + 1 + length;
    }
    const CodePoint first = code_point_at(text, begin);
    const CharClass kind = scanner_.class_at(text, begin);
    const std::size_t second = begin + first.length;
    if (kind == CharClass::letter) return scanner_.run_end(text, second, CharClass::letter);
    if (kind == CharClass::number) return number_end(text, second);
    const bool second_exists = second < text.size();
    const CharClass next = second_exists ? scanner_.class_at(text, second) : CharClass::space;
    if (next == CharClass::letter && !is_one_of(text[begin], "\r\n")) {
      return scanner_.run_end(text, second, CharClass::letter);
    }
    if (kind == CharClass::other || (text[begin] == ' ' && next == CharClass::other)) {
      const std::size_t end = scanner_.run_end(text, second, CharClass::other);
      return std::min(text.find_first_not_of("\r\n", end), text.size());
    }
    return space_end(text, begin);
  }

  /// No piece has white space after anything else, but for line breaks after punctuation.
  std::size_t cut_point(std::string_view text) const override {
    for (std::size_t at = text.size(); at-- > 1;) {
      if (!is_one_of(text[at], " \n")) continue;
      const CharClass before = scanner_.class_before(text, at);
      if (before == CharClass::letter || before == CharClass::number) return at;
      if (before == CharClass::other && text[at] == ' ') return at;
    }
    return 0;
  }

 private:
  /// Whatever the case, with the long s of Unicode's case folding.
  static std::size_t contraction_at(std::string_view text) {
    if (text.starts_with("\u017F")) return 2;
    const char first = text.empty() ? ' ' : lower(text[0]);
    return contraction_length(first, text.size() > 1 ? lower(text[1]) : ' ');
  }

  /// At most two more digits.
  std::size_t number_end(std::string_view text, std::size_t second) const {
    std::size_t end = second;
    for (int i = 0; i < 2 && end < text.size(); ++i) {
      if (scanner_.class_at(text, end) != CharClass::number) break;
      end += code_point_at(text, end).length;
    }
    return end;
  }

  std::size_t space_end(std::string_view text, std::size_t begin) const {
    const std::size_t end = scanner_.run_end(text, begin, CharClass::space);
    if (end == text.size() && space_at_end_ == SpaceAtEnd::one_piece) return end;
    const std::size_t line_break = text.substr(begin, end - begin).find_last_of("\r\n");
    if (line_break != std::string_view::npos) return begin + line_break + 1;
    return scanner_.space_end(text, begin);
  }

  ClassScanner scanner_;
  SpaceAtEnd space_at_end_;
};

// Other spellings of the same patterns: tiktoken's of GPT-2's, and its older one of cl100k's.
constexpr std::string_view kR50kPattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)";
constexpr std::string_view kOldR50kPattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace

std::unique_ptr<Splitter> make_pattern_splitter(std::string_view pattern) {
  if (pattern == kGpt2Pattern || pattern == kR50kPattern || pattern == kOldR50kPattern) {
    return std::make_unique<Gpt2Splitter>();
  }
  if (pattern == kLlama3Pattern) {
    return std::make_unique<Cl100kSplitter>(SpaceAtEnd::as_elsewhere);
  }
  if (pattern == kCl100kPattern) return std::make_unique<Cl100kSplitter>(SpaceAtEnd::one_piece);
  return nullptr;
}

}  // namespace redspine
