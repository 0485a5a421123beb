#include "data/documents/input_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "data/documents/archive.h"
#include "data/documents/decompress.h"
#include "data/io/file.h"
#include "tensor/error.h"

namespace redspine {
namespace {

class SingleFile final : public InputFile {
 public:
  explicit SingleFile(BlockReader reader)
      : reader_(std::make_unique<BlockReader>(std::move(reader))) {}
  std::unique_ptr<ByteSource> next() override { return std::move(reader_); }

 private:
  std::unique_ptr<BlockReader> reader_;
};

}  // namespace

Content open_content(std::unique_ptr<ByteSource> source) {
  BlockReader reader(std::move(source));
  ContentKind kind = kind_of(reader.name(), reader.peek(kNumKindBytes));
  if (!is_compressed(kind)) return {std::move(reader), kind, false};
  BlockReader inner(decompress(std::move(reader), kind));
  kind = kind_of(inner.name(), inner.peek(kNumKindBytes));
  // There is content that decompresses to itself.
  if (is_compressed(kind)) {
    throw ConfigError("", fmt::format("{}: is compressed twice, within by {}; legal: once",
                                      inner.name(), name_of(kind)));
  }
  return {std::move(inner), kind, true};
}

std::unique_ptr<InputFile> InputFile::open(const std::string& path) {
  Content content = open_content(open_bytes(path));
  switch (content.kind) {
    case ContentKind::tar:
      return open_tar(std::move(content.reader));
    case ContentKind::zip: {
      std::error_code code;
      if (content.was_compressed || !std::filesystem::is_regular_file(path, code)) {
        throw ConfigError("", fmt::format("{}: is a zip in a compressed file or from a pipe, but "
                                          "its list of files is at its end; legal: the zip itself, "
                                          "as a file",
                                          content.reader.name()));
      }
      return open_zip(File::open(path, ""));
    }
    case ContentKind::text:
    case ContentKind::gzip:
    case ContentKind::zstd:
    case ContentKind::xz:
    case ContentKind::bzip2:
      return std::make_unique<SingleFile>(std::move(content.reader));
  }
  __builtin_unreachable();
}

}  // namespace redspine
