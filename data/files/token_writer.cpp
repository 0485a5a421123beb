#include "data/files/token_writer.h"

#include <cstring>

namespace redspine {
namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 20;  // bytes

template <typename T>
void store(std::vector<std::byte>& buffer, std::span<const std::int32_t> tokens) {
  std::size_t at = buffer.size();
  buffer.resize(at + tokens.size() * sizeof(T));
  for (const std::int32_t token : tokens) {
    const T stored = static_cast<T>(token);
    std::memcpy(buffer.data() + at, &stored, sizeof(T));
    at += sizeof(T);
  }
}

}  // namespace

TokenStream::TokenStream(File& file, bool is_u16) : file_(file), is_u16_(is_u16) {}

void TokenStream::append(std::span<const std::int32_t> tokens) {
  if (is_u16_) {
    store<std::uint16_t>(buffer_, tokens);
  } else {
    store<std::int32_t>(buffer_, tokens);
  }
  write_if_full();
}

void TokenStream::append_bytes(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  write_if_full();
}

void TokenStream::write_if_full() {
  if (buffer_.size() >= kBufferSize) flush();
}

File& TokenStream::flush() {
  file_.write(buffer_);
  buffer_.clear();
  return file_;
}

}  // namespace redspine
