#include "data/documents/document_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::size_t kReadSize = std::size_t{1} << 17;  // bytes
constexpr const char* kBlank = " \t\r\n";

/// Appends the next bytes of `source`; false at its end.
bool append_from(ByteSource& source, std::string& text) {
  const std::size_t size = text.size();
  text.resize(size + kReadSize);
  const std::size_t num_read =
      source.read(std::as_writable_bytes(std::span(text.data() + size, kReadSize)));
  text.resize(size + num_read);
  return num_read > 0;
}

/// Bytes of the JSON number at the beginning of `text`; 0 if there is none.
std::size_t number_size(std::string_view text) {
  std::size_t at = 0;
  const auto take_digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at > begin;
  };
  const auto take_one_of = [&](std::string_view letters) {
    const bool is_there = at < text.size() && letters.find(text[at]) != std::string_view::npos;
    at += is_there ? 1 : 0;
    return is_there;
  };
  take_one_of("-");
  if (!take_one_of("0") && !take_digits()) return 0;
  if (take_one_of(".") && !take_digits()) return 0;
  if (take_one_of("eE")) {
    take_one_of("+-");
    if (!take_digits()) return 0;
  }
  return at;
}

/// `line` with a 0 for each number, and for what Python writes where there is none.
std::string without_numbers(std::string_view line) {
  std::string text;
  bool is_in_string = false;
  while (!line.empty()) {
    std::size_t size =
        is_in_string && line.front() == '\\' ? std::min<std::size_t>(2, line.size()) : 1;
    std::size_t number = is_in_string ? 0 : number_size(line);
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!is_in_string && line.starts_with(word)) number = word.size();
    }
    if (number > 0) {
      text += '0';
      size = number;
    } else {
      if (line.front() == '"') is_in_string = !is_in_string;
      text += line.substr(0, size);
    }
    line.remove_prefix(size);
  }
  return text;
}

/// The parser refuses numbers beyond f64's.
nlohmann::json parse_json(std::string_view line) {
  try {
    return nlohmann::json::parse(line);
  } catch (const nlohmann::json::exception&) {
    nlohmann::json value = nlohmann::json::parse(without_numbers(line), nullptr, false);
    if (value.is_discarded()) throw;
    return value;
  }
}

/// Where the part begins that is still open.
std::size_t open_begin(const DocumentBatch& batch) {
  return batch.parts.empty() ? 0 : batch.parts.back().end;
}

}  // namespace

DocumentReader::DocumentReader(std::unique_ptr<ByteSource> source, DocumentFormat format,
                               CutPoint cut_point)
    : source_(std::move(source)), format_(std::move(format)), cut_point_(std::move(cut_point)) {}

std::optional<DocumentBatch> DocumentReader::next() {
  DocumentBatch batch{.input = source_->name(),
                      .is_jsonl = format_.is_jsonl,
                      .text = std::exchange(carry_, {}),
                      .parts = {}};
  std::size_t limit = kBatchSize;
  while (!is_at_end_ && (batch.text.size() < limit || !close_in_document(batch, limit))) {
    is_at_end_ = !(format_.is_jsonl             ? add_json_line(batch)
                   : format_.document_separator ? add_line(batch)
                                                : add_block(batch));
  }
  if (batch.parts.empty()) return std::nullopt;
  return batch;
}

bool DocumentReader::add_json_line(DocumentBatch& batch) {
  const auto line = next_line(std::numeric_limits<std::size_t>::max());
  if (!line) return false;
  batch.text += *line;
  end_part(batch, batch.text.size(), true);
  batch.parts.back().line_number = ++line_number_;
  if (!has_json_line_) check_first_json_line(*line);
  return true;
}

/// One value over many lines would be as many problems as lines, or as many skipped lines.
void DocumentReader::check_first_json_line(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return;
  has_json_line_ = true;
  line = line.substr(begin, line.find_last_not_of(kBlank) + 1 - begin);
  if (line.front() != '[' && line != "{") return;
  throw ConfigError("",
                    fmt::format("{}:{}: begins {}; legal: a JSON object a line; for such lines: "
                                "jq -c {} FILE > NEW.jsonl; to take the JSON itself for text: "
                                "--format text",
                                source_->name(), line_number_,
                                line.front() == '[' ? "an array" : "an object of many lines",
                                line.front() == '[' ? "'.[]'" : "."));
}

bool DocumentReader::add_line(DocumentBatch& batch) {
  const bool continues_line = is_in_line_;
  const std::string& separator = *format_.document_separator;
  const auto line = next_line(separator.size() + 2);
  const bool is_in_text = is_in_document_ || batch.text.size() > open_begin(batch);
  if (!line) {
    if (is_in_text) end_part(batch, batch.text.size(), true);
    return false;
  }
  if (continues_line || !is_separator(*line)) {
    batch.text += *line;
  } else if (is_in_text || !separator.empty()) {
    end_part(batch, batch.text.size(), true);
  }
  return true;
}

bool DocumentReader::add_block(DocumentBatch& batch) {
  if (append_from(*source_, batch.text)) return true;
  end_part(batch, batch.text.size(), true);
  return false;
}

/// Closes a batch that is full, if it can be; else raises the limit.
bool DocumentReader::close_in_document(DocumentBatch& batch, std::size_t& limit) {
  const std::size_t begin = open_begin(batch);
  const std::string_view open = std::string_view(batch.text).substr(begin);
  if (open.empty()) return true;
  const std::size_t size = cut_point_(open);
  if (size >= (is_in_document_ ? 1 : kMinFirstPart)) {
    end_part(batch, begin + size, false);
  } else if (begin == 0) {
    limit = 2 * batch.text.size();  // doubled, so that the search stays linear
    return false;
  }
  const std::size_t end = open_begin(batch);
  carry_ = batch.text.substr(end);
  batch.text.resize(end);
  return true;
}

void DocumentReader::end_part(DocumentBatch& batch, std::size_t end, bool ends_document) {
  batch.parts.push_back({.end = end,
                         .begins_document = !is_in_document_,
                         .ends_document = ends_document,
                         .line_number = 0});
  is_in_document_ = !ends_document;
}

bool DocumentReader::is_separator(std::string_view line) const {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line == *format_.document_separator;
}

std::optional<std::string_view> DocumentReader::next_line(std::size_t max_size) {
  std::size_t num_searched = 0;
  for (;;) {
    const std::size_t end = buffer_.find('\n', position_ + num_searched);
    num_searched = buffer_.size() - position_;
    is_in_line_ = end == std::string::npos;
    if (is_in_line_ && num_searched <= max_size && fill()) continue;
    if (is_in_line_ && num_searched == 0) return std::nullopt;
    const std::size_t size = is_in_line_ ? num_searched : end + 1 - position_;
    const std::string_view line = std::string_view(buffer_).substr(position_, size);
    position_ += size;
    return line;
  }
}

bool DocumentReader::fill() {
  buffer_.erase(0, std::exchange(position_, 0));
  return append_from(*source_, buffer_);
}

std::optional<std::string> text_of_json(std::string_view line, const std::string& json_key,
                                        const std::string& place) {
  if (line.find_first_not_of(kBlank) == std::string_view::npos) return std::nullopt;
  nlohmann::json object;
  try {
    object = parse_json(line);
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError("", fmt::format("{}: is no JSON ({})", place, error.what()));
  }
  if (!object.is_object()) {
    throw ConfigError(
        "", fmt::format("{}: is of JSON type {}; legal: object", place, object.type_name()));
  }
  const auto value = object.find(json_key);
  if (value == object.end()) {
    std::string keys;
    for (const auto& item : object.items()) keys += (keys.empty() ? "" : ", ") + item.key();
    throw ConfigError("",
                      fmt::format("{}: has no key \"{}\"; its keys: {}", place, json_key, keys));
  }
  if (!value->is_string()) {
    throw ConfigError("", fmt::format("{}: \"{}\" is of JSON type {}; legal: string", place,
                                      json_key, value->type_name()));
  }
  return std::move(value->get_ref<std::string&>());
}

}  // namespace redspine
