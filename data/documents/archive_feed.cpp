#include "data/documents/archive_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <utility>

#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::size_t kBlockSize = std::size_t{1} << 16;  // bytes

}  // namespace

std::span<const std::byte> StreamFeed::give() {
  reader_.take(num_given_);
  const std::span<const std::byte> ahead = reader_.ahead();
  num_given_ = ahead.size();
  has_ended_ = ahead.empty();
  return ahead;
}

std::int64_t StreamFeed::seek(std::int64_t /*offset*/, int /*whence*/) {
  assert(false);
  return -1;
}

void StreamFeed::check_end(std::int64_t num_used) {
  // Whoever sees the mark has no reason to ask for what follows it.
  if (has_ended_) {
    throw ConfigError("", name() + ": is cut short: the mark at the end of a tar is missing");
  }
  go_behind(num_used);
  for (auto ahead = reader_.ahead(); !ahead.empty(); ahead = reader_.ahead()) {
    if (std::any_of(ahead.begin(), ahead.end(), [](std::byte b) { return b != std::byte{0}; })) {
      throw ConfigError(
          "", name() + ": has more behind the mark at the end of a tar; legal: one tar a file");
    }
    reader_.take(ahead.size());
  }
}

bool StreamFeed::has_more(std::int64_t num_used) {
  if (num_used < reader_.num_taken()) return true;
  go_behind(num_used);
  return !reader_.ahead().empty();
}

void StreamFeed::go_behind(std::int64_t num_used) {
  num_given_ = 0;
  const auto count =
      static_cast<std::size_t>(std::max<std::int64_t>(num_used - reader_.num_taken(), 0));
  reader_.take(std::min(reader_.ahead().size(), count));
}

FileFeed::FileFeed(File file) : file_(std::move(file)), block_(kBlockSize) {}

std::span<const std::byte> FileFeed::give() {
  const std::size_t size = file_.read_up_to_end(offset_, block_);
  offset_ += static_cast<std::int64_t>(size);
  return std::span(block_).first(size);
}

std::int64_t FileFeed::seek(std::int64_t offset, int whence) {
  const std::int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? offset_ : file_.size();
  offset_ = from + offset;
  return offset_;
}

}  // namespace redspine
