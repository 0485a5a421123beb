// Words of our JSON files that stand for the enumerators of a model. Pure; for
// the sources of this folder.
#pragma once

#include <string>

#include "tensor/enum_words.h"
#include "trainer/checkpoint/format/json_reader.h"

namespace redspine {

/// The enumerator whose word, of our own, is the value of `key`.
template <class Enum>
Enum read_word(const JsonReader& reader, const std::string& key) {
  const std::string text = reader.string(key);
  if (const std::optional<Enum> value = value_of<Enum>(text)) return *value;
  reader.fail(key, text, fmt::format("{}", fmt::join(words_of<Enum>(), ", ")));
}

/// The same by the words of `transformers`, of the enumerators that `is_legal` there.
template <class Enum, class IsLegal>
Enum read_transformers_word(const JsonReader& reader, const std::string& key,
                            const IsLegal& is_legal) {
  const std::string text = reader.string(key);
  std::string legal;
  for (const EnumWord<Enum>& word : enum_words<Enum>()) {
    if (!is_legal(word.value)) continue;
    for (const std::string_view theirs : word.in_transformers) {
      if (theirs.empty()) continue;
      if (text == theirs) return word.value;
      legal += fmt::format("{}{}", legal.empty() ? "" : ", ", theirs);
    }
  }
  reader.fail(key, text, legal);
}

}  // namespace redspine
