#include "data/documents/byte_source.h"

#include <utility>

#include "data/io/file.h"

namespace redspine {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(File file) : file_(std::move(file)) {}

  std::size_t read(std::span<std::byte> bytes) override {
    const std::size_t num_read = file_.read(bytes);
    num_read_ += static_cast<std::int64_t>(num_read);
    return num_read;
  }
  std::int64_t num_file_bytes() const override { return num_read_; }
  const std::string& name() const override { return file_.path(); }

 private:
  File file_;
  std::int64_t num_read_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  return std::make_unique<FileSource>(File::open_stream(path));
}

}  // namespace redspine
