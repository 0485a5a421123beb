#include "data/tokenizer/splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "data/tokenizer/pattern_splitter.h"
#include "data/tokenizer/regex_splitter.h"
#include "data/tokenizer/unicode_classes.h"
#include "data/tokenizer/utf8.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(std::string_view text, Splitter& splitter) {
  Pieces pieces;
  for_each_piece(text, splitter, [&pieces](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

Pieces split(std::string_view text, std::string_view pattern) {
  return split(text, *make_splitter(pattern, "key"));
}

/// Texts in which the parts of the patterns meet: letters, digits, marks, spaces and apostrophes of
/// several lengths and scripts, picked evenly, and sometimes any code point at all.
class RandomTexts {
 public:
  std::string next() {
    std::string text;
    const int num_characters = number(1, 24);
    for (int i = 0; i < num_characters; ++i) append_utf8(character(), text);
    return text;
  }

  int number(int low, int high) { return std::uniform_int_distribution(low, high)(engine_); }

 private:
  char32_t character() {
    static const std::u32string kUsual =
        U"aZsStTmMdDrRvVeElLſ''''''  \t\n\n\r\v\u0085\u00A0\u2003\u3000\u180E07٣½Ⅻ"
        U".,-_=!<|>/\\éΣ日本हि\u0301\u200D😀👩";
    if (number(0, 7) > 0) {
      return kUsual[static_cast<std::size_t>(number(0, static_cast<int>(kUsual.size()) - 1))];
    }
    while (true) {
      const auto code_point = static_cast<char32_t>(number(0, 0x10FFFF));
      const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
      if (!is_surrogate && means_the_same_to_pcre2(code_point)) return code_point;
    }
  }

  /// PCRE2 may know an older Unicode, in which some scripts are not letters yet.
  bool means_the_same_to_pcre2(char32_t code_point) {
    std::string text;
    append_utf8(code_point, text);
    const CharClass ours = UnicodeClasses::table().of(code_point);
    return (split("a" + text, *letters_).size() == 1) == (ours == CharClass::letter) &&
           (split("1" + text, *numbers_).size() == 1) == (ours == CharClass::number);
  }

  std::mt19937 engine_{1234};
  std::unique_ptr<Splitter> letters_ = make_regex_splitter("\\p{L}+", "key");
  std::unique_ptr<Splitter> numbers_ = make_regex_splitter("\\p{N}+", "key");
};

TEST(Splitter, CutsAsGpt2Does) {
  EXPECT_EQ(split("I've  10 cats!?\n\n it's 'S", kGpt2Pattern),
            (Pieces{"I", "'ve", " ", " 10", " cats", "!?", "\n\n", " it", "'s", " '", "S"}));
}

TEST(Splitter, CutsAsLlama3Does) {
  EXPECT_EQ(split("I'VE  12345 cats!?\n\n it's\t(x) \n ", kLlama3Pattern),
            (Pieces{"I", "'VE", " ", " ", "123", "45", " cats", "!?\n\n", " it", "'s", "\t", "(x",
                    ")", " \n", " "}));
}

TEST(Splitter, KeepsSpaceAtTheEndInOnePieceForCl100k) {
  EXPECT_EQ(split("a \n b \n ", kCl100kPattern), (Pieces{"a", " \n", " b", " \n "}));
}

TEST(Splitter, EqualsPcre2) {
  RandomTexts texts;
  for (const std::string_view pattern : {kGpt2Pattern, kLlama3Pattern, kCl100kPattern}) {
    const std::unique_ptr<Splitter> ours = make_pattern_splitter(pattern);
    const std::unique_ptr<Splitter> theirs = make_regex_splitter(pattern, "key");
    ASSERT_NE(ours, nullptr);
    for (int i = 0; i < 10000; ++i) {
      const std::string text = texts.next();
      ASSERT_EQ(split(text, *ours), split(text, *theirs)) << pattern << " on " << text;
    }
  }
}

TEST(Splitter, TakesABreakAtACutPointWhateverFollows) {
  RandomTexts texts;
  int num_cuts = 0;
  for (const std::string_view pattern : {kGpt2Pattern, kLlama3Pattern, kCl100kPattern}) {
    const std::unique_ptr<Splitter> splitter = make_splitter(pattern, "key");
    for (int i = 0; i < 3000; ++i) {
      std::string text = texts.next();
      if (i % 2 == 0) text.insert(text.size() / 2, "\xE4\xB8");  // no UTF-8
      const std::string head = text.substr(0, splitter->cut_point(text));
      const std::string tail = text.substr(head.size()) + texts.next();
      Pieces parts = split(head, *splitter);
      for (const std::string& piece : split(tail, *splitter)) parts.push_back(piece);
      ASSERT_EQ(parts, split(head + tail, *splitter)) << pattern << " on " << head << "|" << tail;
      num_cuts += head.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(num_cuts, 3000);
}

TEST(Splitter, FindsCutPointsInTextWithoutSpaces) {
  const std::string text = "日本語。\n日本語\n日本語";
  EXPECT_EQ(make_splitter(kGpt2Pattern, "key")->cut_point(text), text.rfind('\n'));
  EXPECT_EQ(make_splitter(kLlama3Pattern, "key")->cut_point(text), text.rfind('\n'));
  EXPECT_EQ(make_splitter(kLlama3Pattern, "key")->cut_point("日本語。\n"), 0U);
}

TEST(Splitter, MakesAPieceOfEachByteThatIsNoUtf8) {
  EXPECT_EQ(split("ab\xFF\xC3 cd\xE2\x82", kGpt2Pattern),
            (Pieces{"ab", "\xFF", "\xC3", " cd", "\xE2", "\x82"}));
}

TEST(RegexSplitter, MakesPiecesOfWhatLiesBetweenMatches) {
  EXPECT_EQ(split("1ab,22,,c", *make_regex_splitter("[a-z]+|[0-9]", "key")),
            (Pieces{"1", "ab", ",", "2", "2", ",,", "c"}));
}

TEST(RegexSplitter, MakesOnePieceOfATextWithoutAMatch) {
  EXPECT_EQ(split("abc", *make_regex_splitter("x*", "key")), (Pieces{"abc"}));
}

TEST(RegexSplitter, KnowsUnicodesWhiteSpace) {
  const auto splitter = make_regex_splitter("\\s+|[^\\s]+", "key");
  EXPECT_EQ(split("a\u0085\u2003\u180Eb", *splitter), (Pieces{"a", "\u0085\u2003", "\u180Eb"}));
}

TEST(RegexSplitter, TakesALongPieceWithABoundedStack) {
  const std::string text(1 << 20, 'a');
  for (const std::string_view pattern : {"(?:a|b)+", "(?:(a)|b)+?$", "\\p{L}+"}) {
    EXPECT_EQ(split(text, *make_regex_splitter(pattern, "key")), Pieces{text}) << pattern;
  }
}

TEST(RegexSplitter, NamesAPatternThatIsNone) {
  const std::string message = config_error_of([] { make_splitter("a(b", "data.tokenizer"); });
  EXPECT_NE(message.find("data.tokenizer: pattern \"a(b\": at byte 3"), std::string::npos)
      << message;
}

TEST(UnicodeClasses, KnowsUnicode16) {
  const UnicodeClasses& classes = UnicodeClasses::table();
  EXPECT_EQ(classes.of(U'A'), CharClass::letter);
  EXPECT_EQ(classes.of(0x323AF), CharClass::letter);  // CJK extension H, of Unicode 15
  EXPECT_EQ(classes.of(0x10D40), CharClass::number);  // Garay digit zero, of Unicode 16
  EXPECT_EQ(classes.of(0x93F), CharClass::other);     // a vowel sign is a mark
  EXPECT_EQ(classes.of(0x3000), CharClass::space);
  EXPECT_EQ(classes.of(0x200B), CharClass::other);
  EXPECT_EQ(classes.of(0x10FFFF), CharClass::other);
}

}  // namespace
}  // namespace redspine
