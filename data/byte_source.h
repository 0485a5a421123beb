// The bytes of one input from its beginning to its end, uncompressed.
//
// A file that begins like gzip or zstd is decompressed, whatever its name: no text begins so. Both
// kinds may be several compressed streams one after another, as their own tools write and take
// them. Local to a rank, bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace redspine {

class ByteSource {
 public:
  /// "-" is the standard input. ConfigError if the input cannot be read.
  static std::unique_ptr<ByteSource> open(const std::string& path);
  virtual ~ByteSource() = default;

  /// Writes the next bytes to the beginning of `bytes`, at least one unless the input has ended;
  /// returns their number. ConfigError for a compressed input that is damaged or cut short.
  virtual std::size_t read(std::span<std::byte> bytes) = 0;
  /// Bytes of the file itself that were consumed so far, compressed where it is.
  virtual std::int64_t num_file_bytes() const = 0;
  /// How messages name the input.
  virtual const std::string& name() const = 0;
};

}  // namespace redspine
