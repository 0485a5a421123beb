// Where the documents of a Megatron pair lie: its .idx, whose layout token_format.h describes.
//
// Entries are read when they are asked for, so memory does not grow with the number of documents.
// Move-only, local to a rank; const and safe from several threads.
#pragma once

#include <cstdint>
#include <string>

#include "data/files/token_format.h"
#include "data/io/file.h"

namespace redspine {

class DocumentIndex {
 public:
  struct Document {
    std::int64_t number;
    std::int64_t begin;  // tokens of the .bin
    std::int64_t end;
  };

  /// Opens PREFIX.idx and checks its header against its size; ConfigError under `key`.
  static DocumentIndex open(const std::string& prefix, const std::string& key);

  TokenType type() const { return type_; }
  std::int64_t num_sequences() const { return num_sequences_; }
  std::int64_t num_documents() const { return num_document_indices_ - 1; }

  /// ConfigError unless the first and the last entries agree with a .bin of `size` bytes.
  void check_ends(const std::string& bin_path, std::int64_t size) const;
  /// ConfigError that names the first entry that does not follow from those before it: sequences
  /// lie one after another without gaps, and documents are whole sequences in their order.
  void check_all() const;

  /// The document that `token` of the .bin belongs to, in O(log documents) reads. An Error if the
  /// entries around it contradict each other.
  Document document_at(std::int64_t token) const;

 private:
  DocumentIndex(File file, std::string key) : file_(std::move(file)), key_(std::move(key)) {}

  void read_header();
  std::int32_t length(std::int64_t sequence) const;          // tokens
  std::int64_t offset(std::int64_t sequence) const;          // bytes
  std::int64_t first_sequence(std::int64_t document) const;  // num_documents(): num_sequences()

  File file_;
  std::string key_;
  TokenType type_ = TokenType::u16;
  std::int64_t num_sequences_ = 0;
  std::int64_t num_document_indices_ = 0;
};

}  // namespace redspine
