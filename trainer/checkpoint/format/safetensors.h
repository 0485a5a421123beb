// Reads and writes safetensors files: u64 length of a JSON header, the header (name -> dtype,
// shape, data_offsets), then the tensors. https://github.com/huggingface/safetensors#format
//
// The reader trusts nothing: a header is checked in full, against the size of the file, before
// anything of its size is allocated. Local to a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/io/file.h"
#include "trainer/checkpoint/format/element_type.h"

namespace redspine {

/// A tensor as a header names it.
struct SafetensorsEntry {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // bytes, from the end of the header
  std::int64_t end = 0;

  /// Elements and bytes, as the shape says.
  std::int64_t count() const;
  std::int64_t bytes() const { return count() * bytes_of(type); }
};

std::string shape_text(std::span<const std::int64_t> shape);  // "[2, 3]"

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        // in the order of their data
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

/// Longest header that is read, as in the reference implementation.
inline constexpr std::int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// Checks the JSON text of a header whose file has `data_bytes` after it: names are UTF-8, not
/// empty and unique, dtypes known, sizes those of shapes, and the tensors cover the data without
/// gap or overlap. Throws ConfigError that names `path`, the tensor, what was read and what is
/// legal.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes,
                                           const std::string& path);

class SafetensorsFile {
 public:
  /// Reads and checks the header. ConfigError for a file that is missing or not what the format
  /// asks for; Error where the system cannot read it.
  static SafetensorsFile open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// Length word and JSON, as they are in the file: what a manifest hashes.
  const std::string& header_bytes() const { return header_bytes_; }
  const SafetensorsHeader& header() const { return header_; }
  /// Null where there is no tensor of that name.
  const SafetensorsEntry* find(std::string_view name) const;

  /// Bytes [offset, offset + bytes.size()) of a tensor of this file.
  void read_bytes(const SafetensorsEntry& entry, std::int64_t offset,
                  std::span<std::byte> bytes) const;
  /// Lets the system let go of what it remembers of these bytes. Advice: it cannot fail.
  void forget_bytes(const SafetensorsEntry& entry, std::int64_t offset, std::int64_t count) const;
  /// Elements [first, first + values.size()) as f32; ConfigError if the type is not real.
  void read_floats(const SafetensorsEntry& entry, std::int64_t first,
                   std::span<float> values) const;

 private:
  SafetensorsFile(File file, std::string header_bytes, SafetensorsHeader header);

  File file_;
  std::string header_bytes_;
  SafetensorsHeader header_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

/// What is to be written: name, type and shape of each tensor, in the order of the data.
struct SafetensorsTensor {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;
};

/// Streams tensors into a new file; the header stands first, so they are named beforehand.
class SafetensorsWriter {
 public:
  /// Creates the file and writes its header. Throws Error where that fails.
  SafetensorsWriter(const std::string& path, const std::vector<SafetensorsTensor>& tensors);

  const std::string& header_bytes() const { return header_bytes_; }
  std::int64_t file_bytes() const { return file_bytes_; }  // once it is finished

  /// The next bytes of the data; tensors follow one another without a mark.
  void write(std::span<const std::byte> bytes);
  /// Returns once everything is on the medium. All the tensors' bytes were written.
  void finish();

 private:
  File file_;
  std::int64_t file_bytes_ = 0;  // before header_bytes_, whose making adds up the data
  std::string header_bytes_;
  std::int64_t position_ = 0;
  std::int64_t handed_over_ = 0;  // up to here the medium is at work already
};

}  // namespace redspine
