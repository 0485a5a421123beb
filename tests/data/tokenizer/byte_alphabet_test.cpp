#include "data/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace redspine {
namespace {

TEST(ByteAlphabet, SpellsBytesAsGpt2Does) {
  EXPECT_EQ(spell_bytes(" a\n\xFF\xAD"), "ĠaĊÿŃ");
  EXPECT_EQ(read_spelling("ĠaĊÿŃ"), " a\n\xFF\xAD");
  EXPECT_EQ(bytes_in_alphabet_order()[0], '!');
  EXPECT_EQ(bytes_in_alphabet_order()[188], 0);
  EXPECT_EQ(bytes_in_alphabet_order()[255], 0xAD);
}

TEST(ByteAlphabet, ReadsWhatItSpells) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(read_spelling(spell_bytes(bytes)), bytes);
}

TEST(ByteAlphabet, RejectsOtherCharacters) {
  for (const std::string_view wrong : {" ", "a\n", "\u0144", "日", "\xAD", "\u00AD"}) {
    EXPECT_EQ(read_spelling(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace redspine
