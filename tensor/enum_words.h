// The words of an enumeration: what users and files say for its enumerators, in one table beside
// it. Whoever adds an enumerator without a row finds that the program no longer compiles. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace redspine {

/// What one enumerator is called.
template <class Enum>
struct EnumWord {
  Enum value;
  std::string_view text;  // in YAML, in options of commands, and in a config.json of our own
  // In the config.json of `transformers`: the word to write, then another that says the same.
  // Empty: none there.
  std::array<std::string_view, 2> in_transformers = {};
};

/// The table: specialised beside the enumeration, with a row for each enumerator in their order.
/// Enumerators count from 0.
template <class Enum>
inline constexpr std::array<EnumWord<Enum>, 0> kEnumWords = {};

/// Whether an enumerator has this value: compilers print a value that has none as a cast.
template <auto value>
consteval bool is_enumerator() {
  return std::string_view(__PRETTY_FUNCTION__).find("value = (") == std::string_view::npos;
}

/// Whether every enumerator has a row of its own, in its place, and a word that no other has.
template <class Enum>
consteval bool is_complete() {
  constexpr const auto& kTable = kEnumWords<Enum>;
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].value != static_cast<Enum>(i) || kTable[i].text.empty()) return false;
    for (std::size_t other = 0; other < i; ++other) {
      if (kTable[other].text == kTable[i].text) return false;
    }
  }
  return !is_enumerator<static_cast<Enum>(kTable.size())>();
}

/// The checked table.
template <class Enum>
constexpr std::span<const EnumWord<Enum>> enum_words() {
  static_assert(is_complete<Enum>(), "kEnumWords has no row, or not in its place, for each value");
  return kEnumWords<Enum>;
}

/// The word of `value`.
template <class Enum>
constexpr std::string_view word_of(Enum value) {
  return enum_words<Enum>()[static_cast<std::size_t>(value)].text;
}

/// The enumerator of `word`; nothing for other words.
template <class Enum>
constexpr std::optional<Enum> value_of(std::string_view word) {
  for (const EnumWord<Enum>& row : enum_words<Enum>()) {
    if (row.text == word) return row.value;
  }
  return std::nullopt;
}

/// What `transformers` calls `value`; empty where it has no word for it.
template <class Enum>
constexpr std::string_view transformers_word_of(Enum value) {
  return enum_words<Enum>()[static_cast<std::size_t>(value)].in_transformers[0];
}

/// All words, in the order of the enumerators.
template <class Enum>
std::span<const std::string_view> words_of() {
  static constexpr auto kWords = [] {
    std::array<std::string_view, kEnumWords<Enum>.size()> words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = enum_words<Enum>()[i].text;
    return words;
  }();
  return kWords;
}

}  // namespace redspine
