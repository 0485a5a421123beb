// Writes a Megatron pair, PREFIX.bin and PREFIX.idx, as a stream of documents.
//
// Both grow under names that end in .partial and get their own only in finish(), after everything
// is on the medium, the .idx last: since no reader takes a pair without its .idx, a run that was
// interrupted at any moment leaves nothing that could be mistaken for complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/file.h"

namespace redspine {

class MegatronWriter {
 public:
  /// Ids below `vocab_size` are stored as u16 where that holds them all, else as i32. The folder of
  /// `prefix` must exist.
  MegatronWriter(const std::string& prefix, std::int64_t vocab_size);
  /// Removes what was not finished.
  ~MegatronWriter();
  MegatronWriter(const MegatronWriter&) = delete;
  MegatronWriter& operator=(const MegatronWriter&) = delete;

  /// Adds tokens, all of them below the vocabulary's size, to the present document.
  void append(std::span<const std::int32_t> tokens);
  /// Ends the present document, which has at least one token; it becomes one sequence. ConfigError
  /// if it has more tokens than the format can say, 2^31 - 1.
  void end_document();
  /// Publishes the pair in place of one that may be there. Between documents, and the last call.
  void finish();

  std::int64_t num_documents() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t num_tokens() const { return num_tokens_; }  // of ended documents

 private:
  void write_index(File& index) const;

  std::string bin_path_;
  std::string idx_path_;
  bool is_u16_;
  File bin_;
  std::vector<std::byte> buffer_;      // tokens that bin_ still lacks
  std::vector<std::int32_t> lengths_;  // [document] tokens
  std::int64_t num_tokens_ = 0;
  std::int64_t document_length_ = 0;  // tokens of the present document so far
  bool is_finished_ = false;
};

}  // namespace redspine
