// The keys of a configuration, described once: full key and where its value lies. Reading a file,
// --set, printing, provenance, the search for the nearest key and docs/configuration.md all work
// from this one table.
//
// A table points into the Config that it was made for and must not outlive it. Knows no YAML
// library.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor/enum_words.h"
#include "trainer/checkpoint/format/training_json.h"
#include "trainer/config.h"

namespace redspine {

/// One of a fixed set of words, whichever enumeration it is.
struct Choice {
  std::span<const std::string_view> words;  // in the order of the enumerators
  std::function<std::size_t()> get;
  std::function<void(std::size_t)> set;
};

/// A list of entries with keys of their own.
struct Field;
struct FieldList {
  std::function<void()> clear;
  /// Adds an entry and gives its fields, under `entry` ("rates[0]").
  std::function<std::vector<Field>(const std::string& entry)> add;
  std::string_view legal;
};

using FieldValue =
    std::variant<std::int64_t*, std::uint64_t*, double*, std::optional<double>*, bool*,
                 std::string*, Choice, std::vector<DataFileConfig>*, FieldList>;

struct Field {
  std::string key;  // in full: "model.rope.theta"
  FieldValue value;
  std::string_view description;        // one line with unit and bounds, in Markdown
  std::string_view default_text = {};  // what holds where it is not given, if no constant
};

template <class Enum>
Choice choice(Enum& value) {
  return {.words = words_of<Enum>(),
          .get = [&value] { return static_cast<std::size_t>(value); },
          .set = [&value](std::size_t index) { value = static_cast<Enum>(index); }};
}

/// The default_text of a key that must be given.
inline constexpr std::string_view kRequired = "required";

/// Every key of a run's configuration, in the order in which it is written.
std::vector<Field> fields_of(Config& config);
/// The keys of one entry of a list of data files; `entry` is "data.train[0]".
std::vector<Field> fields_of(DataFileConfig& file, const std::string& entry);

/// Every key with its value as text, as a checkpoint records it.
std::vector<Setting> recorded_settings(Config config);

/// The value as it is written in YAML, and read again to the same bits. A list is in flow style.
/// Empty for an optional without a value.
std::string text_of(const FieldValue& value);

/// `text`, which is UTF-8, in double quotes, with the escapes of YAML.
std::string quoted(std::string_view text);

}  // namespace redspine
