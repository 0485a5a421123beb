#include "data/documents/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <locale.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <utility>

#include "data/documents/archive_feed.h"
#include "tensor/error.h"

namespace redspine {
namespace {

struct Free {
  void operator()(::archive* handle) const { ::archive_read_free(handle); }
};
using Handle = std::unique_ptr<::archive, Free>;

Handle new_handle() {
  Handle handle(::archive_read_new());
  if (handle == nullptr) throw std::bad_alloc();
  return handle;
}

std::string reason_of(::archive* handle) {
  const char* reason = ::archive_error_string(handle);
  return reason == nullptr ? "unknown" : reason;
}

/// libarchive gives names in the character set of the user's locale and warns where it lacks a
/// character. Names here are UTF-8, whatever the locale.
class Utf8Names {
 public:
  Utf8Names() : utf8_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (utf8_ != nullptr) before_ = ::uselocale(utf8_);
  }
  ~Utf8Names() {
    if (utf8_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(utf8_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  locale_t utf8_;
  locale_t before_ = nullptr;
};

/// What libarchive reads from. No exception may pass through it: rethrow() does that later.
struct Source {
  std::unique_ptr<ArchiveFeed> feed;
  std::exception_ptr failure = nullptr;

  void rethrow() {
    if (failure != nullptr) std::rethrow_exception(std::exchange(failure, nullptr));
  }
};

template <typename Action>
std::int64_t guarded(::archive* handle, void* pointer, const Action& action) {
  auto& source = *static_cast<Source*>(pointer);
  try {
    return action(*source.feed);
  } catch (...) {
    source.failure = std::current_exception();
    ::archive_set_error(handle, EIO, "reading failed");
    return ARCHIVE_FATAL;
  }
}

la_ssize_t give(::archive* handle, void* source, const void** bytes) {
  return guarded(handle, source, [bytes](ArchiveFeed& feed) {
    const std::span<const std::byte> given = feed.give();
    *bytes = given.data();
    return static_cast<std::int64_t>(given.size());
  });
}

la_int64_t seek(::archive* handle, void* source, la_int64_t offset, int whence) {
  return guarded(handle, source, [=](ArchiveFeed& feed) { return feed.seek(offset, whence); });
}

/// `source` must stay where it is.
int open_with(::archive* handle, Source& source) {
  ::archive_read_set_read_callback(handle, give);
  ::archive_read_set_callback_data(handle, &source);
  return ::archive_read_open1(handle);
}

class CompressedSource final : public ByteSource {
 public:
  CompressedSource(std::unique_ptr<StreamFeed> feed, ContentKind kind)
      : kind_(kind), feed_(*feed), source_{std::move(feed)}, handle_(new_handle()) {
    assert(kind == ContentKind::xz || kind == ContentKind::bzip2);
    if (kind == ContentKind::xz) {
      ::archive_read_support_filter_xz(handle_.get());
    } else {
      ::archive_read_support_filter_bzip2(handle_.get());
    }
    ::archive_read_support_format_raw(handle_.get());
    ::archive_read_support_format_empty(handle_.get());
    check(open_with(handle_.get(), source_));
    ::archive_entry* entry = nullptr;
    const int result = ::archive_read_next_header(handle_.get(), &entry);
    is_at_end_ = result == ARCHIVE_EOF;
    if (!is_at_end_) check(result);
  }

  std::size_t read(std::span<std::byte> bytes) override {
    if (is_at_end_) return 0;
    const la_ssize_t size = ::archive_read_data(handle_.get(), bytes.data(), bytes.size());
    check(static_cast<int>(std::min<la_ssize_t>(size, 0)));
    is_at_end_ = size == 0;
    // libarchive takes what does not begin like another stream for nothing.
    if (is_at_end_ && feed_.has_more(num_used())) {
      fail("what follows is no stream of this kind");
    }
    return static_cast<std::size_t>(size);
  }
  std::int64_t num_file_bytes() const override { return feed_.num_file_bytes(); }
  const std::string& name() const override { return feed_.name(); }

 private:
  std::int64_t num_used() const { return ::archive_filter_bytes(handle_.get(), -1); }

  void check(int result) {
    source_.rethrow();
    if (result == ARCHIVE_OK) return;
    fail(feed_.has_ended() ? "it is damaged, or the file ends in the middle of it"
                           : reason_of(handle_.get()));
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw ConfigError("", stream_failure(name(), kind_, num_used(), reason));
  }

  ContentKind kind_;
  StreamFeed& feed_;
  Source source_;
  Handle handle_;
  bool is_at_end_ = false;
};

/// As in a folder (inputs.h).
bool is_hidden(const std::string& member) {
  const std::filesystem::path path(member);
  return std::any_of(path.begin(), path.end(), [](const std::filesystem::path& part) {
    return part.native().starts_with('.') && part != "." && part != "..";
  });
}

class ArchiveFile final : public InputFile {
 public:
  ArchiveFile(ContentKind kind, std::unique_ptr<ArchiveFeed> feed)
      : kind_(kind), source_{std::move(feed)}, handle_(new_handle()) {
    if (kind == ContentKind::tar) {
      ::archive_read_support_format_tar(handle_.get());
    } else {
      ::archive_read_set_seek_callback(handle_.get(), seek);
      ::archive_read_support_format_zip_seekable(handle_.get());
    }
    if (open_with(handle_.get(), source_) != ARCHIVE_OK) fail(name());
  }

  std::unique_ptr<ByteSource> next() override;

  /// Of the present file of the archive.
  std::size_t read(std::span<std::byte> bytes, const std::string& member) {
    const la_ssize_t size = ::archive_read_data(handle_.get(), bytes.data(), bytes.size());
    if (size < 0) fail(member);
    return static_cast<std::size_t>(size);
  }
  std::int64_t num_file_bytes() const { return source_.feed->num_file_bytes(); }

 private:
  const std::string& name() const { return source_.feed->name(); }
  [[noreturn]] void fail(const std::string& member) {
    source_.rethrow();
    throw ConfigError("", fmt::format("{}: reading the {} archive fails: {}", member,
                                      name_of(kind_), reason_of(handle_.get())));
  }
  void check_entry(::archive_entry* entry) const;

  ContentKind kind_;
  Source source_;
  Handle handle_;
  std::string last_ = name();  // how messages name the file that was come to last
  bool has_files_ = false;
};

class Member final : public ByteSource {
 public:
  Member(ArchiveFile& archive, std::string name) : archive_(archive), name_(std::move(name)) {}
  std::size_t read(std::span<std::byte> bytes) override { return archive_.read(bytes, name_); }
  std::int64_t num_file_bytes() const override { return archive_.num_file_bytes(); }
  const std::string& name() const override { return name_; }

 private:
  ArchiveFile& archive_;
  std::string name_;
};

[[noreturn]] void reject(const std::string& member, const char* reason) {
  throw ConfigError("", fmt::format("{}: {}", member, reason));
}

std::unique_ptr<ByteSource> ArchiveFile::next() {
  for (;;) {
    const Utf8Names utf8;
    ::archive_entry* entry = nullptr;
    const int result = ::archive_read_next_header(handle_.get(), &entry);
    if (result == ARCHIVE_EOF) break;
    const char* path = entry == nullptr ? nullptr : ::archive_entry_pathname(entry);
    // What can be told of a header that cannot be read is behind which file it lies.
    if (result != ARCHIVE_OK) fail(path == nullptr ? last_ : fmt::format("{}: {}", name(), path));
    if (path == nullptr) reject(last_, "is followed by a file without a name");
    last_ = fmt::format("{}: {}", name(), path);
    if (is_hidden(path) || ::archive_entry_filetype(entry) == AE_IFDIR) continue;
    check_entry(entry);
    has_files_ = true;
    Content content = open_content(std::make_unique<Member>(*this, last_));
    if (content.kind != ContentKind::text) {
      reject(last_, "is an archive in an archive; unpack the outer one, and give what was in it");
    }
    return std::make_unique<BlockReader>(std::move(content.reader));
  }
  source_.feed->check_end(::archive_filter_bytes(handle_.get(), -1));
  if (!has_files_) reject(name(), "is an archive without files");
  return nullptr;
}

void ArchiveFile::check_entry(::archive_entry* entry) const {
  if (::archive_entry_is_encrypted(entry) != 0) {
    reject(last_, "is encrypted; unpack the archive, and give what was in it");
  }
  if (::archive_entry_hardlink(entry) != nullptr || ::archive_entry_filetype(entry) != AE_IFREG) {
    reject(last_, "is a link or a device; unpack the archive, and give what was in it");
  }
  const std::string_view path = ::archive_entry_pathname(entry);
  if (kind_ == ContentKind::zip && (path == "[Content_Types].xml" || path == "mimetype")) {
    reject(name(), "is an office document or a book; legal: text; save it as text");
  }
}

}  // namespace

std::unique_ptr<ByteSource> decompress_by_libarchive(BlockReader reader, ContentKind kind) {
  return std::make_unique<CompressedSource>(std::make_unique<StreamFeed>(std::move(reader)), kind);
}

std::unique_ptr<InputFile> open_tar(BlockReader reader) {
  return std::make_unique<ArchiveFile>(ContentKind::tar,
                                       std::make_unique<StreamFeed>(std::move(reader)));
}

std::unique_ptr<InputFile> open_zip(File file) {
  return std::make_unique<ArchiveFile>(ContentKind::zip,
                                       std::make_unique<FileFeed>(std::move(file)));
}

}  // namespace redspine
