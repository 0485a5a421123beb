// From the JSON of a safetensors header to a checked list of tensors. Reads event by event, so that
// a hostile header costs no more memory than the tensors that it names.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tensor/error.h"
#include "trainer/checkpoint/format/safetensors.h"

namespace redspine {
namespace {

constexpr std::size_t kMaxDims = 8;
constexpr const char* kMetadata = "__metadata__";

// Grows with the events of the JSON parser; throws ConfigError at the first that has no place in a
// header. Depth 1 is the header itself, 2 a tensor or the metadata, 3 an array of a tensor.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { reject("null"); }
  bool boolean(bool value) override { reject(value ? "true" : "false"); }
  bool number_float(number_float_t, const string_t& text) override { reject(text); }
  bool binary(binary_t&) override { reject("binary data"); }
  bool number_integer(number_integer_t value) override { reject(fmt::format("{}", value)); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3) reject(fmt::format("{}", value));
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(fmt::format("{} has {}; legal: at most 2^63 - 1", key_, value));
    }
    std::vector<std::int64_t>& list = key_ == "shape" ? entry_.shape : offsets_;
    if (list.size() == (key_ == "shape" ? kMaxDims : 2)) {
      fail(fmt::format("{} has more than {} numbers", key_, list.size()));
    }
    list.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && is_metadata_) {
      header_.metadata[key_] = value;
      return true;
    }
    if (depth_ != 2 || key_ != "dtype") reject("a string");
    type_ = element_type(value);
    if (!type_) {
      fail(fmt::format("dtype is {}; legal: {}", quote(value), element_type_names()));
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ == 1) {
      entry_ = {};
      entry_.name = key_;
      type_.reset();
      offsets_.clear();
      keys_.clear();
      is_metadata_ = key_ == kMetadata;
    } else if (depth_ != 0) {
      reject("an object");
    }
    ++depth_;
    return true;
  }

  bool key(string_t& value) override {
    key_ = value;
    if (depth_ == 1) {
      entry_.name.clear();
      if (value.empty()) fail("a tensor has the empty name");
      if (!names_.insert(value).second) fail(fmt::format("{} is there twice", quote(value)));
      return true;
    }
    const bool is_known = value == "dtype" || value == "shape" || value == "data_offsets";
    if (!is_metadata_ && !is_known) {
      fail(fmt::format("has the key {}; legal: dtype, shape, data_offsets", quote(value)));
    }
    if (!keys_.insert(value).second) fail(fmt::format("has the key {} twice", quote(value)));
    return true;
  }

  bool end_object() override {
    --depth_;
    if (depth_ != 1 || is_metadata_) return true;
    if (keys_.size() != 3 || offsets_.size() != 2 || !type_) {
      fail("is incomplete; needed: dtype, shape and two data_offsets");
    }
    entry_.type = *type_;
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_.entries.push_back(std::move(entry_));
    entry_ = {};
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || is_metadata_ || key_ == "dtype") reject("an array");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    fail(fmt::format("is no JSON at byte {}: {}", position, error.what()));
  }

 private:
  static std::string quote(const std::string& name) {
    constexpr std::size_t kMaxShown = 100;
    return nlohmann::json(name.substr(0, kMaxShown))
        .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }

  [[noreturn]] void fail(const std::string& text) const {
    const std::string who =
        entry_.name.empty() ? "the header" : fmt::format("tensor {}", quote(entry_.name));
    throw ConfigError("", fmt::format("{}: {}: {}", path_, who, text));
  }
  [[noreturn]] void reject(const std::string& what) const {
    fail(fmt::format("has {} where it has no place{}", what,
                     key_.empty() ? "" : fmt::format(" (after {})", quote(key_))));
  }

  const std::string& path_;
  SafetensorsHeader header_;
  std::set<std::string> names_;
  int depth_ = 0;
  std::string key_;

  // The tensor that is being read.
  SafetensorsEntry entry_;
  std::optional<ElementType> type_;
  std::vector<std::int64_t> offsets_;
  std::set<std::string> keys_;
  bool is_metadata_ = false;
};

// Bytes of a shape, or nothing where they are beyond 64 bits.
std::optional<std::int64_t> checked_bytes(const SafetensorsEntry& entry) {
  std::int64_t bytes = bytes_of(entry.type);
  bool is_empty = false;
  for (const std::int64_t dim : entry.shape) {
    if (dim == 0) is_empty = true;
  }
  if (is_empty) return 0;
  for (const std::int64_t dim : entry.shape) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  }
  return bytes;
}

// The tensors, in the order of their data, fill it exactly.
void check_layout(const SafetensorsHeader& header, std::int64_t data_bytes,
                  const std::string& path) {
  const auto fail = [&](const SafetensorsEntry& entry, const std::string& text) {
    throw ConfigError("", fmt::format("{}: tensor {}: {}", path, entry.name, text));
  };
  std::int64_t position = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    const std::string offsets = fmt::format("data_offsets are [{}, {}]", entry.begin, entry.end);
    if (entry.begin > entry.end) fail(entry, offsets + ", which end before they begin");
    if (entry.end > data_bytes) {
      fail(entry, fmt::format("{}, but the file has {} bytes of data", offsets, data_bytes));
    }
    const std::optional<std::int64_t> bytes = checked_bytes(entry);
    if (bytes != entry.end - entry.begin) {
      fail(entry, fmt::format("{}, but {} of {} takes {} bytes", offsets, name_of(entry.type),
                              shape_text(entry.shape),
                              bytes ? fmt::format("{}", *bytes) : "more than 2^63"));
    }
    if (entry.begin != position) {
      fail(entry,
           fmt::format("{}, {} the tensor before, which ends at {}", offsets,
                       entry.begin < position ? "overlapping" : "leaving a gap after", position));
    }
    position = entry.end;
  }
  if (position != data_bytes) {
    throw ConfigError("", fmt::format("{}: the tensors end at byte {} of the data, the file at {}",
                                      path, position, data_bytes));
  }
}

}  // namespace

std::int64_t SafetensorsEntry::count() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  return count;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text;
  for (const std::int64_t dim : shape) text += fmt::format("{}{}", text.empty() ? "" : ", ", dim);
  return "[" + text + "]";
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes,
                                           const std::string& path) {
  // The parser is lenient about what stands around the object; the format is not.
  if (json.empty() || json.front() != '{') {
    throw ConfigError("", fmt::format("{}: the header does not begin with {{", path));
  }
  HeaderReader reader(path);
  nlohmann::json::sax_parse(json, &reader);
  SafetensorsHeader header = reader.take();
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  check_layout(header, data_bytes, path);
  return header;
}

}  // namespace redspine
