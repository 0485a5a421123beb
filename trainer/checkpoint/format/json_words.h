// Words of our JSON files that stand for the enumerators of a model. Pure; for
// trainer/checkpoint/*.cpp.
#pragma once

#include <string>

#include "trainer/checkpoint/format/json_reader.h"

namespace redspine {

template <class Enum>
struct Word {
  Enum value;
  const char* text;
};

template <class Enum, std::size_t kCount>
const char* text_of(Enum value, const Word<Enum> (&words)[kCount]) {
  for (const Word<Enum>& word : words) {
    if (word.value == value) return word.text;
  }
  return words[0].text;
}

template <class Enum, std::size_t kCount>
Enum read_word(const JsonReader& reader, const std::string& key,
               const Word<Enum> (&words)[kCount]) {
  const std::string text = reader.string(key);
  std::string legal;
  for (const Word<Enum>& word : words) {
    if (text == word.text) return word.value;
    legal += fmt::format("{}{}", legal.empty() ? "" : ", ", word.text);
  }
  reader.fail(key, text, legal);
}

}  // namespace redspine
