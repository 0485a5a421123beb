#include "data/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace redspine {
namespace {

TEST(Utf8, TakesTheFirstAndLastOfEachLength) {
  for (const char32_t code_point :
       {0x0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF}) {
    std::string text;
    append_utf8(code_point, text);
    EXPECT_EQ(valid_utf8_prefix(text), text.size()) << std::uint32_t{code_point};
    EXPECT_EQ(std::uint32_t{code_point_at(text, 0).value}, std::uint32_t{code_point});
    EXPECT_EQ(code_point_at(text, 0).length, text.size());
  }
}

TEST(Utf8, EndsBeforeWhatIsNone) {
  for (const std::string_view wrong :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xE2\x82",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF0\x90\x80", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFE", "\xFF"}) {
    for (const std::string_view before : {"", "x", "0123456789é"}) {
      const std::string text = std::string(before) + std::string(wrong) + " after";
      EXPECT_EQ(valid_utf8_prefix(text), before.size()) << text;
      EXPECT_EQ(valid_utf8_prefix(text.substr(0, before.size() + wrong.size())), before.size());
    }
  }
}

}  // namespace
}  // namespace redspine
