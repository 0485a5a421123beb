// Where an archive's bytes come from: a stream, or a file that is read at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/documents/block_reader.h"
#include "data/io/file.h"

namespace redspine {

class ArchiveFeed {
 public:
  virtual ~ArchiveFeed() = default;
  /// The next bytes, valid until the next call; none at the end.
  virtual std::span<const std::byte> give() = 0;
  /// As lseek; returns the new offset.
  virtual std::int64_t seek(std::int64_t offset, int whence) = 0;
  /// After the last file of an archive whose reader used so many bytes: is that all there is?
  /// ConfigError where it is not.
  virtual void check_end(std::int64_t num_used) = 0;

  virtual std::int64_t num_file_bytes() const = 0;  // read so far
  virtual const std::string& name() const = 0;
};

/// Of a tar, or a compressed stream. Cannot seek.
class StreamFeed final : public ArchiveFeed {
 public:
  explicit StreamFeed(BlockReader reader) : reader_(std::move(reader)) {}

  std::span<const std::byte> give() override;
  std::int64_t seek(std::int64_t offset, int whence) override;
  /// Of a tar. Reads up to the end of the stream, where the checksum of a compression may be.
  void check_end(std::int64_t num_used) override;
  std::int64_t num_file_bytes() const override { return reader_.num_file_bytes(); }
  const std::string& name() const override { return reader_.name(); }

  /// Whether more was asked for than there is.
  bool has_ended() const { return has_ended_; }
  /// Whether there is more than the bytes that were used.
  bool has_more(std::int64_t num_used);

 private:
  /// Goes to the end of the bytes that were used, or, where they end in an earlier block than the
  /// present one, to its beginning.
  void go_behind(std::int64_t num_used);

  BlockReader reader_;
  std::size_t num_given_ = 0;  // bytes, not yet taken from reader_
  bool has_ended_ = false;
};

/// Of a zip.
class FileFeed final : public ArchiveFeed {
 public:
  explicit FileFeed(File file);

  std::span<const std::byte> give() override;
  std::int64_t seek(std::int64_t offset, int whence) override;
  void check_end(std::int64_t /*num_used*/) override {}  // what does not end is no zip
  std::int64_t num_file_bytes() const override { return offset_; }
  const std::string& name() const override { return file_.path(); }

 private:
  File file_;
  std::vector<std::byte> block_;
  std::int64_t offset_ = 0;
};

}  // namespace redspine
