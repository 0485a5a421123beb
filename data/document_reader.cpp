#include "data/document_reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "tensor/error.h"

namespace redspine {

DocumentReader::DocumentReader(const std::string& path, const DocumentFormat& format)
    : path_(path), format_(format), stream_(path, std::ios::binary) {
  if (!stream_) {
    throw ConfigError("", fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  if (std::filesystem::is_directory(path)) {
    throw ConfigError("", path + ": is a folder; legal: a file");
  }
}

std::optional<std::string> DocumentReader::next() {
  for (;;) {
    std::optional<std::string> document = format_.is_jsonl             ? next_json()
                                          : format_.document_separator ? next_text()
                                                                       : rest_of_file();
    if (!document || !document->empty()) return document;
  }
}

bool DocumentReader::get_line(std::string& line) {
  if (!std::getline(stream_, line)) {
    if (stream_.bad()) throw Error(fmt::format("{}: reading failed", path_));
    return false;
  }
  ++line_number_;
  return true;
}

std::optional<std::string> DocumentReader::next_json() {
  std::string line;
  while (get_line(line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) return parse(line);
  }
  return std::nullopt;
}

std::string DocumentReader::parse(const std::string& line) const {
  const std::string place = fmt::format("{}:{}", path_, line_number_);
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    throw ConfigError("", fmt::format("{}: is no JSON ({})", place, error.what()));
  }
  if (!object.is_object()) {
    throw ConfigError(
        "", fmt::format("{}: is of JSON type {}; legal: object", place, object.type_name()));
  }
  const auto value = object.find(format_.json_key);
  if (value == object.end()) {
    std::string keys;
    for (const auto& item : object.items()) keys += (keys.empty() ? "" : ", ") + item.key();
    throw ConfigError(
        "", fmt::format("{}: has no key \"{}\"; its keys: {}", place, format_.json_key, keys));
  }
  if (!value->is_string()) {
    throw ConfigError("", fmt::format("{}: \"{}\" is of JSON type {}; legal: string", place,
                                      format_.json_key, value->type_name()));
  }
  return value->get<std::string>();
}

std::optional<std::string> DocumentReader::next_text() {
  std::string document;
  std::string line;
  bool is_at_end = true;
  while (get_line(line)) {
    is_at_end = false;
    const bool has_return = !line.empty() && line.back() == '\r';
    if (std::string_view(line).substr(0, line.size() - (has_return ? 1 : 0)) ==
        *format_.document_separator) {
      break;
    }
    document += line;
    if (!stream_.eof()) document += '\n';  // The last line may have none.
  }
  if (is_at_end) return std::nullopt;
  return document;
}

std::optional<std::string> DocumentReader::rest_of_file() {
  if (stream_.peek() == std::ifstream::traits_type::eof()) return std::nullopt;
  std::string document;
  std::vector<char> block(std::size_t{1} << 16);
  do {
    stream_.read(block.data(), static_cast<std::streamsize>(block.size()));
    document.append(block.data(), static_cast<std::size_t>(stream_.gcount()));
  } while (stream_);
  if (stream_.bad()) throw Error(fmt::format("{}: reading failed", path_));
  return document;
}

}  // namespace redspine
