// Writes a Megatron pair, PREFIX.bin and PREFIX.idx.
//
// The .idx is published last, and no reader takes a pair without it. Memory does not grow with the
// number of documents: their lengths wait in the unfinished .idx itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/files/token_writer.h"
#include "data/io/partial_file.h"

namespace redspine {

class MegatronWriter final : public TokenWriter {
 public:
  /// Ids below `vocab_size` are stored as u16 where that holds them all, else as i32. The folder of
  /// `prefix` must exist.
  MegatronWriter(const std::string& prefix, std::int64_t vocab_size);
  MegatronWriter(const MegatronWriter&) = delete;
  MegatronWriter& operator=(const MegatronWriter&) = delete;

  void append(std::span<const std::int32_t> tokens) override;
  /// The document becomes one sequence. ConfigError if it has more tokens than the format can say,
  /// 2^31 - 1.
  void end_document() override;
  void prepare() override;
  void retract() override;
  void publish() override;

  std::int64_t num_documents() const override { return num_documents_; }
  std::int64_t num_tokens() const override { return num_tokens_; }

 private:
  void write_offsets(File& index);

  std::string bin_path_;
  std::string idx_path_;
  PartialFile bin_file_;
  PartialFile idx_file_;
  bool is_u16_;
  TokenStream bin_;
  TokenStream idx_;  // while documents come: room for the header, and their lengths
  std::int64_t num_documents_ = 0;
  std::int64_t num_tokens_ = 0;
  std::int64_t document_length_ = 0;  // tokens of the present document so far
};

}  // namespace redspine
