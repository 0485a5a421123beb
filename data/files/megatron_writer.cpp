#include "data/files/megatron_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <filesystem>
#include <limits>
#include <vector>

#include "data/files/token_format.h"
#include "tensor/error.h"

namespace redspine {
namespace {

template <typename T>
void append_number(TokenStream& stream, const T& value) {
  stream.append_bytes(std::as_bytes(std::span(&value, 1)));
}

}  // namespace

MegatronWriter::MegatronWriter(const std::string& prefix, std::int64_t vocab_size)
    : bin_path_(prefix + ".bin"),
      idx_path_(prefix + ".idx"),
      bin_file_(bin_path_, kOutputOption),
      idx_file_(idx_path_, kOutputOption),
      is_u16_(vocab_size <= std::int64_t{1} << 16),
      bin_(bin_file_.file(), is_u16_),
      idx_(idx_file_.file(), false) {
  // Zeros, so that even under its final name the file would be no index yet.
  idx_.append_bytes(std::array<std::byte, megatron::kHeaderSize>{});
}

void MegatronWriter::append(std::span<const std::int32_t> tokens) {
  bin_.append(tokens);
  document_length_ += static_cast<std::int64_t>(tokens.size());
}

void MegatronWriter::end_document() {
  assert(document_length_ > 0);
  if (document_length_ > std::numeric_limits<std::int32_t>::max()) {
    throw ConfigError("", fmt::format("{}: document {} has {} tokens; legal: up to {}", bin_path_,
                                      num_documents(), document_length_,
                                      std::numeric_limits<std::int32_t>::max()));
  }
  append_number(idx_, static_cast<std::int32_t>(document_length_));
  num_tokens_ += document_length_;
  document_length_ = 0;
  ++num_documents_;
}

void MegatronWriter::prepare() {
  assert(document_length_ == 0);
  bin_.flush().sync();
  File& index = idx_.flush();
  write_offsets(index);
  for (std::int64_t document = 0; document <= num_documents_; ++document) {
    append_number(idx_, document);
  }
  std::vector<std::byte> header;
  const auto add = [&header](const auto& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    header.insert(header.end(), bytes.begin(), bytes.end());
  };
  for (const char letter : megatron::kMagic) add(letter);
  add(megatron::kVersion);
  add(is_u16_ ? megatron::kCodeOfU16 : megatron::kCodeOfI32);
  add(static_cast<std::uint64_t>(num_documents_));
  add(static_cast<std::uint64_t>(num_documents_ + 1));
  idx_.flush().write_at(0, header);
  index.sync();
}

/// Goes once more through the lengths, which the file holds up to its end.
void MegatronWriter::write_offsets(File& index) {
  std::array<std::int32_t, 1 << 14> lengths;
  std::int64_t offset = 0;
  for (std::int64_t document = 0; document < num_documents_;) {
    const auto count = std::min<std::int64_t>(lengths.size(), num_documents_ - document);
    const auto block = std::span(lengths).first(static_cast<std::size_t>(count));
    index.read_at(megatron::kHeaderSize + 4 * document, std::as_writable_bytes(block));
    for (const std::int32_t length : block) {
      append_number(idx_, offset);
      offset += std::int64_t{length} * (is_u16_ ? 2 : 4);
    }
    document += count;
  }
}

void MegatronWriter::retract() {
  remove_file(idx_path_);
  sync_folder_of(idx_path_);
}

void MegatronWriter::publish() {
  bin_file_.publish();
  idx_file_.publish();
  sync_folder_of(idx_path_);
}

}  // namespace redspine
