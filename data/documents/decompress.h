// Compressed streams on the way to text. Each may be several streams one after another, as their
// own tools write and take them, and one that is damaged or cut short is a ConfigError where it is
// read. Local to a rank, memory bounded by the window of the compression: at most 2 GiB, which
// only `zstd --long=31` needs.
#pragma once

#include <memory>

#include "data/documents/block_reader.h"
#include "data/documents/content_kind.h"

namespace redspine {

/// `kind` is that of `reader`'s content, and is_compressed().
std::unique_ptr<ByteSource> decompress(BlockReader reader, ContentKind kind);

}  // namespace redspine
