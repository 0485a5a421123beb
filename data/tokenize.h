// Text to token files: what `redspine tokenize` does.
//
// Documents are read in the order of the inputs, encoded by several threads, and written in the
// same order, each followed by one end of text. Local; memory is bounded whatever the size of the
// inputs, except that a line of JSON and a stretch of text that cannot be cut are held as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/documents/input_reader.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/error.h"

namespace redspine {

enum class OutputFormat {
  megatron,  // PREFIX.bin and PREFIX.idx
  llmc,      // PREFIX_000000.bin and on
};

struct TokenizeOptions {
  InputOptions input;
  std::string output_prefix;  // folders are made
  OutputFormat output_format = OutputFormat::megatron;
  std::int64_t shard_tokens = 100'000'000;  // llmc: tokens of each shard but the last
  /// Share of the documents that becomes PREFIX_validation, the others being PREFIX_train in place
  /// of PREFIX; 0 = no split. A document's own hash (of its first 64 KiB) decides, so the split
  /// stays the same however the inputs are ordered or added to, and equal documents stay together.
  double validation_fraction = 0.0;
  int num_threads = 1;
  std::function<void(const InputProgress&)> report = {};  // input_reader.h

  /// Adds what is wrong with the values alone, under the names of the options.
  void validate(ConfigProblems& problems) const;

  /// Of the one or two sets of token files.
  std::vector<std::string> prefixes() const;
  /// Those which, while they are locked, keep all of the outputs from others.
  std::vector<std::string> first_files() const;
  /// What is written; tokenize() does not take it for input.
  void add_outputs(OwnFiles& own) const;
};

struct TokenizeOutput {
  std::string prefix;
  std::int64_t num_documents;
  std::int64_t num_tokens;  // with the ends of text
};

struct TokenizeSummary {
  std::vector<TokenizeOutput> outputs = {};  // one, or train and validation
  std::int64_t num_documents = 0;
  std::int64_t num_tokens = 0;
  std::int64_t num_bytes = 0;  // of text
  SkippedLines skipped = {};
  std::vector<std::string> left_out = {};  // input_reader.h
  double seconds = 0.0;
};

/// ConfigError for what the user can mend (a missing input, a line that is no JSON: FILE:LINE, a
/// set that got no document, outputs that another process writes), and then no output is published.
TokenizeSummary tokenize(TokenizeOptions options, const Tokenizer& tokenizer);

}  // namespace redspine
