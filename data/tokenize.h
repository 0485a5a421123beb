// Text to token files: what `redspine tokenize` does.
//
// Reads documents from plain text or JSONL, turns each into its bytes' tokens and an end of text,
// and writes Megatron pairs. Local, single-threaded; memory holds one document at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/error.h"

namespace redspine {

enum class TextFormat {
  automatic,  // jsonl where the name ends in .jsonl, else text
  text,       // a document a file, or as document_separator says
  jsonl,      // a JSON object a line, with the document under json_key
};

struct TokenizeOptions {
  std::vector<std::string> inputs;  // files, read in this order
  std::string output_prefix;        // PREFIX.bin and PREFIX.idx; folders are made
  TextFormat format = TextFormat::automatic;
  std::string json_key = "text";
  /// Text only: a line equal to this ends a document and belongs to none; empty for blank lines.
  std::optional<std::string> document_separator = {};
  /// Share of the documents that becomes PREFIX_validation, the others being PREFIX_train in place
  /// of PREFIX; 0 = no split. A document's own hash decides, so the split stays the same however
  /// the inputs are ordered or added to, and equal documents stay together.
  double validation_fraction = 0.0;

  /// Adds what is wrong with the values alone, under the names of the options ("--json-key").
  void validate(Mistakes& mistakes) const;
};

struct TokenizeOutput {
  std::string prefix;
  std::int64_t num_documents;
  std::int64_t num_tokens;  // with the ends of text
};

struct TokenizeSummary {
  std::vector<TokenizeOutput> outputs;  // one, or train and validation
  std::int64_t num_documents;
  std::int64_t num_tokens;
  std::int64_t num_bytes;  // of text
  double seconds;
};

/// Empty documents are left out. ConfigError for what the user can mend (a missing input, a line
/// that is no JSON: FILE:LINE, a set that got no document), and then no output is published.
TokenizeSummary tokenize(const TokenizeOptions& options);

}  // namespace redspine
