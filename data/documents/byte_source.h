// A stream of bytes from its beginning to its end. Local to a rank, bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace redspine {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Writes the next bytes to the beginning of `bytes`, at least one unless the stream has ended;
  /// returns their number. ConfigError for a compressed stream that is damaged or cut short.
  virtual std::size_t read(std::span<std::byte> bytes) = 0;
  /// Bytes of the file itself that were consumed so far, compressed where it is.
  virtual std::int64_t num_file_bytes() const = 0;
  /// How messages name the stream: the file, and of an archive the member.
  virtual const std::string& name() const = 0;
};

/// The bytes of a file as they are; "-" is the standard input. ConfigError if it cannot be read.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

}  // namespace redspine
