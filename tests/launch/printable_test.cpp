#include "launch/printable.h"

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

}  // namespace
}  // namespace redspine
