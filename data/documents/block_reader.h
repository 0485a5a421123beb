// A stream with a view of the bytes that come next: what a decoder reads from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/documents/byte_source.h"

namespace redspine {

class BlockReader final : public ByteSource {
 public:
  explicit BlockReader(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), block_(kBlockSize) {}

  /// What was read and not yet taken; empty only at the end of the stream.
  std::span<const std::byte> ahead() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = source_->read(block_);
    }
    return std::span(block_).subspan(begin_, end_ - begin_);
  }
  void take(std::size_t count) {
    begin_ += count;
    num_taken_ += static_cast<std::int64_t>(count);
  }
  /// The first bytes of the stream, before any is taken; fewer where it is shorter. A pipe may
  /// deliver them one by one.
  std::span<const std::byte> peek(std::size_t count) {
    while (end_ < count) {
      const std::size_t num_read = source_->read(std::span(block_).subspan(end_));
      if (num_read == 0) break;
      end_ += num_read;
    }
    return std::span(block_).first(std::min(count, end_));
  }
  std::int64_t num_taken() const { return num_taken_; }

  std::size_t read(std::span<std::byte> bytes) override {
    const std::span<const std::byte> next = ahead();
    const std::size_t count = std::min(next.size(), bytes.size());
    std::copy_n(next.begin(), count, bytes.begin());
    take(count);
    return count;
  }
  std::int64_t num_file_bytes() const override { return source_->num_file_bytes(); }
  const std::string& name() const override { return source_->name(); }

 private:
  static constexpr std::size_t kBlockSize = std::size_t{1} << 17;  // bytes

  std::unique_ptr<ByteSource> source_;
  std::vector<std::byte> block_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t num_taken_ = 0;
};

}  // namespace redspine
