#include "tensor/enum_words.h"

#include <gtest/gtest.h>

namespace redspine {
namespace {

enum class Fruit { apple, pear, plum };
enum class Short { apple, pear };
enum class Turned { apple, pear };
enum class Doubled { apple, pear };
enum class Bare { apple };

}  // namespace

template <>
inline constexpr auto kEnumWords<Fruit> = std::to_array<EnumWord<Fruit>>({
    {Fruit::apple, "an apple", {"pomme", "golden"}},
    {Fruit::pear, "a pear"},
    {Fruit::plum, "a plum", {"prune"}},
});
template <>
inline constexpr auto kEnumWords<Short> = std::to_array<EnumWord<Short>>({{Short::apple, "apple"}});
template <>
inline constexpr auto kEnumWords<Turned> = std::to_array<EnumWord<Turned>>({
    {Turned::pear, "pear"},
    {Turned::apple, "apple"},
});
template <>
inline constexpr auto kEnumWords<Doubled> = std::to_array<EnumWord<Doubled>>({
    {Doubled::apple, "fruit"},
    {Doubled::pear, "fruit"},
});

namespace {

TEST(EnumWords, ATableWithoutARowForEachEnumeratorInItsPlaceDoesNotCompile) {
  static_assert(is_complete<Fruit>());
  static_assert(!is_complete<Short>());
  static_assert(!is_complete<Turned>());
  static_assert(!is_complete<Doubled>());
  static_assert(!is_complete<Bare>());
}

TEST(EnumWords, GiveTheEnumeratorOfAWord) {
  for (const EnumWord<Fruit>& row : enum_words<Fruit>()) {
    EXPECT_EQ(value_of<Fruit>(row.text), row.value);
  }
  EXPECT_EQ(value_of<Fruit>("pomme"), std::nullopt) << "a word of others";
  EXPECT_EQ(value_of<Fruit>(""), std::nullopt);
}

TEST(EnumWords, GiveTheWordsOfEachEnumerator) {
  EXPECT_EQ(word_of(Fruit::pear), "a pear");
  EXPECT_EQ(transformers_word_of(Fruit::apple), "pomme");
  EXPECT_EQ(transformers_word_of(Fruit::pear), "");
  ASSERT_EQ(words_of<Fruit>().size(), 3U);
  EXPECT_EQ(words_of<Fruit>()[2], "a plum");
}

}  // namespace
}  // namespace redspine
