#include "data/llmc_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/token_type.h"
#include "tensor/error.h"

namespace redspine {
namespace {

namespace fs = std::filesystem;

/// The shards of `prefix`, of whatever number, that end in `ending`.
std::vector<std::string> shards_of(const std::string& prefix, std::string_view ending) {
  const fs::path as_path(prefix);
  const std::string stem = as_path.filename().string() + "_";
  const fs::path folder = as_path.parent_path().empty() ? fs::path(".") : as_path.parent_path();
  std::vector<std::string> shards;
  std::error_code code;
  fs::directory_iterator at(folder, code);
  for (; !code && at != fs::directory_iterator(); at.increment(code)) {
    const std::string file = at->path().filename().string();
    std::string_view number = file;
    if (!number.starts_with(stem) || !number.ends_with(ending)) continue;
    number.remove_prefix(stem.size());
    number.remove_suffix(std::min(ending.size(), number.size()));
    const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    if (number.size() >= 6 && std::all_of(number.begin(), number.end(), is_digit)) {
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
  if (is_published_) return;
  std::error_code ignored;
  for (std::int64_t shard = 0; shard < num_shards_; ++shard) {
    fs::remove(partial(shard_path(shard)), ignored);
  }
}

std::string LlmcWriter::shard_path(std::int64_t shard) const {
  return fmt::format("{}_{:06}.bin", options_.prefix, shard);
}

void LlmcWriter::begin_shard() {
  shard_.emplace(partial(shard_path(num_shards_)), is_u16_);
  ++num_shards_;
  shard_length_ = 0;
  // Zeros until the shard is complete.
  shard_->append_bytes(std::array<std::byte, llmc::kHeaderSize>{});
}

void LlmcWriter::end_shard() {
  std::array<std::int32_t, llmc::kHeaderSize / 4> header = {};
  header[0] = is_u16_ ? llmc::kMagicU16 : llmc::kMagicU32;
  header[1] = is_u16_ ? llmc::kVersionU16 : llmc::kVersionU32;
  header[2] = static_cast<std::int32_t>(shard_length_);
  File& file = shard_->flush();
  file.write_at(0, std::as_bytes(std::span(header)));
  file.sync();
  shard_.reset();
}

void LlmcWriter::append(std::span<const std::int32_t> tokens) {
  while (!tokens.empty()) {
    if (shard_length_ == options_.shard_tokens) end_shard();
    if (!shard_) begin_shard();
    const auto count = static_cast<std::size_t>(
        std::min(static_cast<std::int64_t>(tokens.size()), options_.shard_tokens - shard_length_));
    shard_->append(tokens.first(count));
    shard_length_ += static_cast<std::int64_t>(count);
    num_tokens_ += static_cast<std::int64_t>(count);
    tokens = tokens.subspan(count);
  }
}

void LlmcWriter::end_document() { ++num_documents_; }

void LlmcWriter::prepare() {
  if (shard_) end_shard();
}

void LlmcWriter::retract() {
  for (const std::string& shard : shards_of(options_.prefix, ".bin")) remove_file(shard);
  sync_folder_of(options_.prefix);
}

void LlmcWriter::publish() {
  for (std::int64_t shard = 0; shard < num_shards_; ++shard) {
    rename_file(partial(shard_path(shard)), shard_path(shard));
  }
  // What is left is of a longer run that was interrupted.
  for (const std::string& shard : shards_of(options_.prefix, partial(".bin"))) remove_file(shard);
  sync_folder_of(options_.prefix);
  is_published_ = true;
}

}  // namespace redspine
