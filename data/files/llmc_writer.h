// Writes llm.c's token files as shards, PREFIX_000000.bin and on, of a given number of tokens each
// but the last. Documents run on from one shard to the next.
//
// All shards are published together. token_file.h rejects a glob where some still end in .partial.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include "data/files/token_writer.h"
#include "data/io/partial_file.h"

namespace redspine {

class LlmcWriter final : public TokenWriter {
 public:
  struct Options {
    std::string prefix;         // its folder must exist
    std::int64_t vocab_size;    // stored as u16 where that holds all ids, else as u32
    std::int64_t shard_tokens;  // 1 to 2^31 - 1, the limit of the header
  };

  static std::string shard_path(const std::string& prefix, std::size_t shard);

  explicit LlmcWriter(Options options);
  ~LlmcWriter() override;
  LlmcWriter(const LlmcWriter&) = delete;
  LlmcWriter& operator=(const LlmcWriter&) = delete;

  void append(std::span<const std::int32_t> tokens) override;
  void end_document() override;
  void prepare() override;
  void retract() override;
  void publish() override;

  std::int64_t num_documents() const override { return num_documents_; }
  std::int64_t num_tokens() const override { return num_tokens_; }

 private:
  void begin_shard();
  void end_shard();

  Options options_;
  bool is_u16_;
  // Of those that have begun. The first stays open, so that its lock keeps others from the prefix;
  // of the others there may be more than a process may have open.
  std::deque<PartialFile> shards_;
  std::optional<TokenStream> stream_;  // of the present shard, if it has begun
  std::int64_t shard_length_ = 0;      // tokens of the present one
  std::int64_t num_documents_ = 0;
  std::int64_t num_tokens_ = 0;
};

}  // namespace redspine
