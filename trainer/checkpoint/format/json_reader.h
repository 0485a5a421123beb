// Reads the objects of our JSON files strictly: each value by key and type, and every problem with
// the file, the key, what was read and what is legal. Local; for trainer/checkpoint/*.cpp.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tensor/error.h"

namespace redspine {

class JsonReader {
 public:
  /// The whole text, which is an object.
  JsonReader(std::string_view text, std::string path)
      : path_(std::move(path)), object_(nlohmann::ordered_json::parse(text, nullptr, false)) {
    if (!object_.is_object()) throw ConfigError("", path_ + ": is no JSON object");
  }

  bool contains(const std::string& key) const {
    return object_.contains(key) && !object_[key].is_null();
  }
  std::int64_t integer(const std::string& key) const {
    const auto& value = at(key);
    if (!value.is_number_integer()) fail(key, value.dump(), "a whole number");
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
      fail(key, value.dump(), "a number below 2^63");
    }
    return value.get<std::int64_t>();
  }
  double real(const std::string& key) const {
    const auto& value = at(key);
    if (!value.is_number()) fail(key, value.dump(), "a number");
    return value.get<double>();
  }
  bool boolean(const std::string& key) const {
    const auto& value = at(key);
    if (!value.is_boolean()) fail(key, value.dump(), "true or false");
    return value.get<bool>();
  }
  std::string string(const std::string& key) const {
    const auto& value = at(key);
    if (!value.is_string()) fail(key, value.dump(), "a string");
    return value.get<std::string>();
  }
  std::int64_t integer_or(const std::string& key, std::int64_t otherwise) const {
    return contains(key) ? integer(key) : otherwise;
  }
  double real_or(const std::string& key, double otherwise) const {
    return contains(key) ? real(key) : otherwise;
  }
  bool boolean_or(const std::string& key, bool otherwise) const {
    return contains(key) ? boolean(key) : otherwise;
  }
  /// A problem where the key is there with the other value.
  void expect(const std::string& key, bool legal) const {
    if (boolean_or(key, legal) == legal) return;
    fail(key, legal ? "false" : "true", legal ? "true" : "false");
  }
  JsonReader object(const std::string& key) const {
    const auto& value = at(key);
    if (!value.is_object()) fail(key, value.dump(), "an object");
    return {value, fmt::format("{}: {}", path_, key)};
  }
  std::vector<JsonReader> objects(const std::string& key) const {
    const auto& list = at(key);
    if (!list.is_array()) fail(key, list.dump(), "a list");
    std::vector<JsonReader> readers;
    for (const auto& value : list) {
      const std::string place = fmt::format("{}[{}]", key, readers.size());
      if (!value.is_object()) fail(place, value.dump(), "an object");
      readers.push_back(JsonReader(value, fmt::format("{}: {}", path_, place)));
    }
    return readers;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto& item : object_.items()) names.push_back(item.key());
    return names;
  }

  [[noreturn]] void fail(const std::string& key, const std::string& read,
                         const std::string& legal) const {
    throw ConfigError("", fmt::format("{}: {}: is {}; legal: {}", path_, key, read, legal));
  }

 private:
  JsonReader(nlohmann::ordered_json object, std::string path)
      : path_(std::move(path)), object_(std::move(object)) {}

  const nlohmann::ordered_json& at(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) {
      throw ConfigError("", fmt::format("{}: {}: is missing", path_, key));
    }
    return *found;
  }

  std::string path_;
  nlohmann::ordered_json object_;
};

}  // namespace redspine
