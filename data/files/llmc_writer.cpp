#include "data/files/llmc_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "data/files/token_format.h"
#include "data/io/own_files.h"
#include "tensor/error.h"

namespace redspine {
namespace {

namespace fs = std::filesystem;

/// The shards of `prefix`, of whatever number, that end in `ending`.
std::vector<std::string> shards_of(const std::string& prefix, std::string_view ending) {
  const fs::path as_path(prefix);
  const std::string stem = as_path.filename().string();
  const fs::path folder = as_path.parent_path().empty() ? fs::path(".") : as_path.parent_path();
  std::vector<std::string> shards;
  std::error_code code;
  fs::directory_iterator at(folder, code);
  for (; !code && at != fs::directory_iterator(); at.increment(code)) {
    if (is_shard_name(at->path().filename().string(), stem, ending)) {
      shards.push_back(at->path().string());
    }
  }
  if (code) {
    throw Error(fmt::format("{}: listing it failed: {}", folder.string(), code.message()));
  }
  return shards;
}

}  // namespace

LlmcWriter::LlmcWriter(Options options)
    : options_(std::move(options)), is_u16_(options_.vocab_size <= std::int64_t{1} << 16) {
  begin_shard();  // at once, so that a folder that cannot be written to is told at once
}

LlmcWriter::~LlmcWriter() {
  // The first one last: its lock keeps others from the prefix.
  while (!shards_.empty()) shards_.pop_back();
}

std::string LlmcWriter::shard_path(const std::string& prefix, std::size_t shard) {
  return fmt::format("{}_{:06}.bin", prefix, shard);
}

void LlmcWriter::begin_shard() {
  shards_.emplace_back(shard_path(options_.prefix, shards_.size()), kOutputOption);
  stream_.emplace(shards_.back().file(), is_u16_);
  shard_length_ = 0;
  // Zeros until the shard is complete.
  stream_->append_bytes(std::array<std::byte, llmc::kHeaderSize>{});
}

void LlmcWriter::end_shard() {
  std::array<std::int32_t, llmc::kHeaderSize / 4> header = {};
  header[0] = is_u16_ ? llmc::kMagicU16 : llmc::kMagicU32;
  header[1] = is_u16_ ? llmc::kVersionU16 : llmc::kVersionU32;
  header[2] = static_cast<std::int32_t>(shard_length_);
  File& file = stream_->flush();
  file.write_at(0, std::as_bytes(std::span(header)));
  file.sync();
  stream_.reset();
  if (shards_.size() > 1) file.close();
}

void LlmcWriter::append(std::span<const std::int32_t> tokens) {
  while (!tokens.empty()) {
    if (shard_length_ == options_.shard_tokens) end_shard();
    if (!stream_) begin_shard();
    const auto count = static_cast<std::size_t>(
        std::min(static_cast<std::int64_t>(tokens.size()), options_.shard_tokens - shard_length_));
    stream_->append(tokens.first(count));
    shard_length_ += static_cast<std::int64_t>(count);
    num_tokens_ += static_cast<std::int64_t>(count);
    tokens = tokens.subspan(count);
  }
}

void LlmcWriter::end_document() { ++num_documents_; }

void LlmcWriter::prepare() {
  if (stream_) end_shard();
}

void LlmcWriter::retract() {
  for (const std::string& shard : shards_of(options_.prefix, ".bin")) remove_file(shard);
  sync_folder_of(options_.prefix);
}

void LlmcWriter::publish() {
  // The first one last: once it has its name, others may write to the prefix.
  for (; shards_.size() > 1; shards_.pop_back()) shards_.back().publish();
  const fs::path first = fs::path(partial(shard_path(options_.prefix, 0))).filename();
  for (const std::string& shard : shards_of(options_.prefix, partial(".bin"))) {
    // What else is left is of a longer run that was interrupted.
    if (fs::path(shard).filename() != first) remove_file(shard);
  }
  shards_.front().publish();
  sync_folder_of(options_.prefix);
}

}  // namespace redspine
