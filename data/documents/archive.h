// Archives by libarchive, which no other file includes (archive.cpp): the files of tar and zip
// archives, and streams compressed by xz or bzip2. Its warnings are errors here: most of them say
// that something of the content is lost.
#pragma once

#include <memory>

#include "data/documents/block_reader.h"
#include "data/documents/content_kind.h"
#include "data/documents/input_file.h"
#include "data/io/file.h"

namespace redspine {

/// xz or bzip2; decompress() of decompress.h says more.
std::unique_ptr<ByteSource> decompress_by_libarchive(BlockReader reader, ContentKind kind);

std::unique_ptr<InputFile> open_tar(BlockReader reader);
/// Takes a file, not a stream, for the list of a zip's files is at its end: read from its
/// beginning, a file whose header is damaged would be passed over without a word.
std::unique_ptr<InputFile> open_zip(File file);

}  // namespace redspine
