#include "trainer/checkpoint/format/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tensor/error.h"

namespace redspine {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::int64_t kLengthBytes = 8;
constexpr std::size_t kHeaderAlignment = 8;

// Type conversion works through a buffer of this many elements.
constexpr std::size_t kElementsAtOnce = std::size_t{1} << 20;

// What is handed to the medium in one go.
constexpr std::int64_t kBytesAtOnce = std::int64_t{16} << 20;

std::string read_header_bytes(const File& file) {
  const std::int64_t size = file.size();
  if (size < kLengthBytes) {
    throw ConfigError(
        "", fmt::format("{}: has {} bytes, too few for a safetensors header", file.path(), size));
  }
  std::uint64_t length = 0;
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  const std::int64_t most = std::min(size - kLengthBytes, kMaxSafetensorsHeaderBytes);
  if (length > static_cast<std::uint64_t>(most)) {
    throw ConfigError("", fmt::format("{}: the header has {} bytes by its length; legal: at most "
                                      "{} in this file of {}",
                                      file.path(), length, most, size));
  }
  std::string bytes(static_cast<std::size_t>(kLengthBytes) + length, '\0');
  file.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::string make_header_bytes(const std::vector<SafetensorsTensor>& tensors, std::int64_t& end) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};  // transformers asks for it
  end = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const std::int64_t begin = end;
    end += SafetensorsEntry{.name = "", .type = tensor.type, .shape = tensor.shape}.bytes();
    header[tensor.name] = {
        {"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string json = header.dump();
  json.resize((json.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  const std::uint64_t length = json.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return bytes + json;
}

}  // namespace

SafetensorsFile::SafetensorsFile(File file, std::string header_bytes, SafetensorsHeader header)
    : file_(std::move(file)), header_bytes_(std::move(header_bytes)), header_(std::move(header)) {
  for (std::size_t i = 0; i < header_.entries.size(); ++i) by_name_[header_.entries[i].name] = i;
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  File file = File::open(path, "");
  std::string bytes = read_header_bytes(file);
  SafetensorsHeader header =
      parse_safetensors_header(std::string_view(bytes).substr(kLengthBytes),
                               file.size() - static_cast<std::int64_t>(bytes.size()), path);
  return {std::move(file), std::move(bytes), std::move(header)};
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.entries[found->second];
}

void SafetensorsFile::read_bytes(const SafetensorsEntry& entry, std::int64_t offset,
                                 std::span<std::byte> bytes) const {
  assert(offset >= 0 && offset + static_cast<std::int64_t>(bytes.size()) <= entry.bytes());
  file_.read_at(static_cast<std::int64_t>(header_bytes_.size()) + entry.begin + offset, bytes);
}

void SafetensorsFile::forget_bytes(const SafetensorsEntry& entry, std::int64_t offset,
                                   std::int64_t count) const {
  ::posix_fadvise(file_.descriptor(),
                  static_cast<std::int64_t>(header_bytes_.size()) + entry.begin + offset, count,
                  POSIX_FADV_DONTNEED);
}

void SafetensorsFile::read_floats(const SafetensorsEntry& entry, std::int64_t first,
                                  std::span<float> values) const {
  if (entry.type == ElementType::f32) {
    read_bytes(entry, first * bytes_of(entry.type), std::as_writable_bytes(values));
    return;
  }
  if (!is_real(entry.type)) {
    throw ConfigError("", fmt::format("{}: tensor {}: is {}; legal: F32, F16, BF16", path(),
                                      entry.name, name_of(entry.type)));
  }
  const auto element_bytes = static_cast<std::size_t>(bytes_of(entry.type));
  std::vector<std::byte> buffer(std::min(values.size(), kElementsAtOnce) * element_bytes);
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), kElementsAtOnce);
    const auto bytes = std::span(buffer).first(count * element_bytes);
    read_bytes(entry, first * bytes_of(entry.type), bytes);
    widen(values.first(count), bytes, entry.type);
    values = values.subspan(count);
    first += static_cast<std::int64_t>(count);
  }
}

SafetensorsWriter::SafetensorsWriter(const std::string& path,
                                     const std::vector<SafetensorsTensor>& tensors)
    : file_(File::create(path)), header_bytes_(make_header_bytes(tensors, file_bytes_)) {
  position_ = static_cast<std::int64_t>(header_bytes_.size());
  file_bytes_ += position_;
  file_.write(std::as_bytes(std::span(header_bytes_)));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  assert(position_ + static_cast<std::int64_t>(bytes.size()) <= file_bytes_);
  file_.write(bytes);
  position_ += static_cast<std::int64_t>(bytes.size());
  if (position_ - handed_over_ < kBytesAtOnce) return;
  // The medium gets to work while more is on its way, so that finish() has little left to wait for.
  // A file system that cannot do it loses nothing.
  ::sync_file_range(file_.descriptor(), handed_over_, position_ - handed_over_,
                    SYNC_FILE_RANGE_WRITE);
  handed_over_ = position_;
}

void SafetensorsWriter::finish() {
  assert(position_ == file_bytes_);
  file_.sync();
}

}  // namespace redspine
