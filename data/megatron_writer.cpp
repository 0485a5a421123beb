#include "data/megatron_writer.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>

#include "data/token_type.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 20;  // bytes

std::string partial(const std::string& path) { return path + ".partial"; }

template <typename T>
void append_bytes(std::vector<std::byte>& buffer, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  buffer.insert(buffer.end(), bytes.begin(), bytes.end());
}

template <typename T>
void append_tokens(std::vector<std::byte>& buffer, std::span<const std::int32_t> tokens) {
  std::size_t at = buffer.size();
  buffer.resize(at + tokens.size() * sizeof(T));
  for (const std::int32_t token : tokens) {
    const T stored = static_cast<T>(token);
    std::memcpy(buffer.data() + at, &stored, sizeof(T));
    at += sizeof(T);
  }
}

void write_if_full(File& file, std::vector<std::byte>& buffer) {
  if (buffer.size() < kBufferSize) return;
  file.write(buffer);
  buffer.clear();
}

void rename(const std::string& from, const std::string& to) {
  std::error_code code;
  std::filesystem::rename(from, to, code);
  if (code) throw Error(fmt::format("{}: renaming to {} failed: {}", from, to, code.message()));
}

}  // namespace

MegatronWriter::MegatronWriter(const std::string& prefix, std::int64_t vocab_size)
    : bin_path_(prefix + ".bin"),
      idx_path_(prefix + ".idx"),
      is_u16_(vocab_size <= std::int64_t{1} << 16),
      bin_(File::create(partial(bin_path_))) {}

MegatronWriter::~MegatronWriter() {
  if (is_finished_) return;
  std::error_code ignored;  // A destructor has nobody to tell, and the name already says enough.
  std::filesystem::remove(partial(bin_path_), ignored);
  std::filesystem::remove(partial(idx_path_), ignored);
}

void MegatronWriter::append(std::span<const std::int32_t> tokens) {
  if (is_u16_) {
    append_tokens<std::uint16_t>(buffer_, tokens);
  } else {
    append_tokens<std::int32_t>(buffer_, tokens);
  }
  document_length_ += static_cast<std::int64_t>(tokens.size());
  write_if_full(bin_, buffer_);
}

void MegatronWriter::end_document() {
  assert(document_length_ > 0);
  if (document_length_ > std::numeric_limits<std::int32_t>::max()) {
    throw ConfigError("", fmt::format("{}: document {} has {} tokens; legal: up to {}", bin_path_,
                                      num_documents(), document_length_,
                                      std::numeric_limits<std::int32_t>::max()));
  }
  lengths_.push_back(static_cast<std::int32_t>(document_length_));
  num_tokens_ += document_length_;
  document_length_ = 0;
}

void MegatronWriter::finish() {
  assert(document_length_ == 0);
  bin_.write(buffer_);
  bin_.sync();
  File index = File::create(partial(idx_path_));
  write_index(index);
  index.sync();
  // An older .idx must be gone before the new .bin takes the place of the one it describes.
  std::filesystem::remove(idx_path_);
  sync_folder_of(idx_path_);
  rename(partial(bin_path_), bin_path_);
  rename(partial(idx_path_), idx_path_);
  sync_folder_of(idx_path_);
  is_finished_ = true;
}

void MegatronWriter::write_index(File& index) const {
  std::vector<std::byte> buffer;
  const auto num_sequences = static_cast<std::uint64_t>(lengths_.size());
  for (const char letter : megatron::kMagic) append_bytes(buffer, letter);
  append_bytes(buffer, megatron::kVersion);
  append_bytes(buffer, is_u16_ ? megatron::kCodeOfU16 : megatron::kCodeOfI32);
  append_bytes(buffer, num_sequences);
  append_bytes(buffer, num_sequences + 1);
  for (const std::int32_t length : lengths_) {
    append_bytes(buffer, length);
    write_if_full(index, buffer);
  }
  std::int64_t offset = 0;
  for (const std::int32_t length : lengths_) {
    append_bytes(buffer, offset);
    offset += std::int64_t{length} * (is_u16_ ? 2 : 4);
    write_if_full(index, buffer);
  }
  for (std::int64_t document = 0; document <= num_documents(); ++document) {
    append_bytes(buffer, document);
    write_if_full(index, buffer);
  }
  index.write(buffer);
}

}  // namespace redspine
