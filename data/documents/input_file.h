// One input of a command: a file, or the files in an archive one after another, as text. What it is
// shows in its content, whatever its name (content_kind.h): gzip, zstd, xz and bzip2 are
// decompressed, tar and zip are taken apart, also a compressed tar. Local to a rank, bounded
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/documents/block_reader.h"
#include "data/documents/byte_source.h"
#include "data/documents/content_kind.h"

namespace redspine {

class InputFile {
 public:
  /// "-" is the standard input. ConfigError if it cannot be read or is no text.
  static std::unique_ptr<InputFile> open(const std::string& path);
  virtual ~InputFile() = default;

  /// The next text; nothing after the last one. A text must be given up before the next is asked
  /// for, and before this file. Of an archive, texts are its files in their order, without hidden
  /// ones and folders. ConfigError for an archive that is damaged, cut short or without files, and
  /// for what in it cannot be read: encrypted files, links, archives.
  virtual std::unique_ptr<ByteSource> next() = 0;
};

struct Content {
  BlockReader reader;  // decompressed
  ContentKind kind;    // text, tar or zip
  bool was_compressed;
};

/// What `source` holds, once it is decompressed. ConfigError where that is no text.
Content open_content(std::unique_ptr<ByteSource> source);

}  // namespace redspine
