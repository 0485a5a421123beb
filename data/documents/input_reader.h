// The documents of all inputs of a command, in order, in bounded memory.
//
// next() is for one thread at a time; parse() turns what it gave into texts and is for any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/documents/document_reader.h"
#include "data/documents/input_file.h"
#include "data/io/inputs.h"
#include "data/io/own_files.h"
#include "tensor/error.h"

namespace redspine {

enum class TextFormat {
  automatic,  // jsonl where the name says so (docs/data.md); else text
  text,       // one document per file, or as document_separator says
  jsonl,      // one JSON object per line, with the document under json_key
};

enum class InvalidLines {
  reject,  // the first one is a ConfigError
  skip,    // they are counted, and the first one is told
};

struct InputOptions {
  std::vector<std::string> inputs;  // inputs.h says what they may be
  TextFormat format = TextFormat::automatic;
  std::string json_key = "text";
  std::optional<std::string> document_separator = {};  // document_reader.h
  InvalidLines invalid_lines = InvalidLines::reject;   // of jsonl
  OwnFiles own = {};                                   // are no input

  /// Adds what is wrong with the values alone, under the names of the options ("--json-key").
  void validate(ConfigProblems& problems) const;
  /// Adds the inputs that mean nothing, and their files that are no text: known at once, not when
  /// their turn comes.
  void check_inputs(ConfigProblems& problems) const;
};

struct InputProgress {
  std::int64_t num_bytes;    // read of the files, compressed where they are
  std::int64_t total_bytes;  // -1: not known
  double seconds;            // since the beginning
};

struct SkippedLines {
  std::int64_t count = 0;
  std::string first = {};  // FILE:LINE and what is wrong there

  void add(const SkippedLines& later);
};

class InputReader {
 public:
  /// ConfigError with all inputs that mean nothing. `report` may be empty, and is called by next()
  /// a few times per second at most.
  InputReader(InputOptions options, CutPoint cut_point,
              std::function<void(const InputProgress&)> report);

  /// The next documents, of one file; nothing after the last ones. What batches hold depends on
  /// the inputs alone. ConfigError for an input that cannot be read.
  std::optional<DocumentBatch> next();

  /// Of the command's own files, those that folders and globs among the inputs hold.
  const std::vector<std::string>& left_out() const { return inputs_.left_out; }

 private:
  bool open_next();
  void report_if_due();

  InputOptions options_;
  CutPoint cut_point_;
  std::function<void(const InputProgress&)> report_;
  FoundInputs inputs_;
  std::size_t num_opened_ = 0;       // of inputs_
  std::unique_ptr<InputFile> file_;  // the present one
  std::optional<DocumentReader> reader_;
  std::int64_t total_bytes_;
  std::int64_t num_bytes_ = 0;       // of files read to their end
  std::int64_t num_file_bytes_ = 0;  // of the present one
  double start_;                     // seconds on some clock
  double last_report_;
};

/// A batch of texts as it is; of a batch of JSON lines, their documents. Blank lines are none.
DocumentBatch parse(DocumentBatch batch, const InputOptions& options, SkippedLines& skipped);

}  // namespace redspine
