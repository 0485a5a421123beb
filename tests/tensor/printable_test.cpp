#include "tensor/printable.h"

#include <gtest/gtest.h>

namespace redspine {
namespace {

TEST(Printable, LeavesTextOfAnyLanguageAsItIs) {
  EXPECT_EQ(printable("plain, Grüße, 中文, 😀"), "\"plain, Grüße, 中文, 😀\"");
  EXPECT_EQ(printable(""), "\"\"");
}

TEST(Printable, EscapesWhatWouldNotStandInALine) {
  EXPECT_EQ(printable("a\nb\r\t\"\\"), R"("a\nb\r\t\"\\")");
  EXPECT_EQ(printable(std::string_view("\0\x1b\x7f", 3)), R"("\x00\x1b\x7f")");
  EXPECT_EQ(printable("\xc2\x9b"), R"("\xc2\x9b")");  // a control character of two bytes
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\xff"), R"("a\xff")");
  EXPECT_EQ(printable("\xe4\xb8"), R"("\xe4\xb8")");          // cut in the middle
  EXPECT_EQ(printable("\xc0\x80"), R"("\xc0\x80")");          // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), R"("\xed\xa0\x80")");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), R"("\xf4\x90\x80\x80")");
}

TEST(Printable, ALineOfAMessageHoldsNothingThatMovesACursor) {
  EXPECT_EQ(one_line("a\x1b[2Jb\r\nc\xe9 \"\\ \xc2\x9b"), R"(a\x1b[2Jb\r\nc\xe9 "\ \xc2\x9b)");
  EXPECT_EQ(one_line("Grüße\t"), "Grüße\\t");
  EXPECT_EQ(printable_lines("a\x1b\n\nb\n"), "a\\x1b\n\nb\n");
}

TEST(Printable, OfALongTextTheBeginningAndTheEndAreShown) {
  const std::string text = "begin" + std::string(3'000'000, 'x') + "end";
  const std::string line = one_line(text);
  EXPECT_LE(line.size(), kMaxLine);
  EXPECT_TRUE(line.starts_with("beginxxx")) << line;
  EXPECT_TRUE(line.ends_with("xxxend")) << line;
  EXPECT_NE(line.find("[... 2998040 bytes ...]"), std::string::npos) << line;
  EXPECT_EQ(one_line(line), line);
  EXPECT_LE(excerpt(text).size(), kMaxExcerpt + 2);
  EXPECT_EQ(excerpt("short \x1b"), R"("short \x1b")");
  EXPECT_EQ(one_line(std::string(kMaxLine, 'x')), std::string(kMaxLine, 'x'));
}

TEST(Printable, ALongTextIsNotCutWithinACharacter) {
  for (std::size_t shift = 0; shift < 3; ++shift) {
    std::string text(shift, 'x');
    for (int i = 0; i < 100; ++i) text += "\u4e2d";
    EXPECT_EQ(excerpt(text).find("\\x"), std::string::npos) << excerpt(text);
  }
}

}  // namespace
}  // namespace redspine
