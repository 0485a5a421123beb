// The documents of one text, one after another, in batches of a size that threads can share out.
//
// Long plain text comes in parts, cut where the tokenizer says that the cut does not show in its
// ids, so memory stays bounded however long a document is. JSON lines come raw, for the threads to
// parse: text_of_json() gives the document of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/documents/byte_source.h"

namespace redspine {

struct DocumentFormat {
  bool is_jsonl;
  /// Text: a line equal to this ends a document and belongs to none; empty for runs of blank
  /// lines. Without it a file is one document, also an empty file.
  std::optional<std::string> document_separator;
};

/// A document or a part of one, or a line of JSON.
struct DocumentPart {
  std::size_t end;  // in the batch's text; it begins where the one before ends
  bool begins_document;
  bool ends_document;
  std::int64_t line_number;  // jsonl: of the file, counted from 1
};

struct DocumentBatch {
  std::string input;  // how messages name the file
  bool is_jsonl;      // the parts are lines of JSON
  std::string text;
  std::vector<DocumentPart> parts;
};

/// Tokenizer::cut_point (tokenizer.h), as far as a reader has to know of it.
using CutPoint = std::function<std::size_t(std::string_view text)>;

class DocumentReader {
 public:
  /// A batch has about this many bytes, or one line of JSON or part of a document that is longer
  /// and cannot be cut.
  static constexpr std::size_t kBatchSize = std::size_t{1} << 18;
  /// The first part of a document has at least as many bytes, unless it is all of it.
  static constexpr std::size_t kMinFirstPart = std::size_t{1} << 16;

  DocumentReader(std::unique_ptr<ByteSource> source, DocumentFormat format, CutPoint cut_point);

  /// The next documents; nothing after the last ones. ConfigError if a compressed input is damaged,
  /// or one of JSON is not of lines.
  std::optional<DocumentBatch> next();

  std::int64_t num_file_bytes() const { return source_->num_file_bytes(); }  // read so far

 private:
  bool add_json_line(DocumentBatch& batch);
  void check_first_json_line(std::string_view line);
  bool add_line(DocumentBatch& batch);
  bool add_block(DocumentBatch& batch);
  bool close_in_document(DocumentBatch& batch, std::size_t& limit);
  void end_part(DocumentBatch& batch, std::size_t end, bool ends_document);
  bool is_separator(std::string_view line) const;
  /// The next line with its end, valid until the next call; beyond `max_size` bytes perhaps only
  /// its beginning.
  std::optional<std::string_view> next_line(std::size_t max_size);
  bool fill();

  std::unique_ptr<ByteSource> source_;
  DocumentFormat format_;
  CutPoint cut_point_;
  std::string buffer_;           // lines that are in no batch yet
  std::size_t position_ = 0;     // of what counts in buffer_
  std::string carry_;            // text of the present document that is in no batch yet
  bool is_in_document_ = false;  // a part of the present document is in an earlier batch
  bool is_in_line_ = false;      // next_line() gave only a beginning
  bool is_at_end_ = false;
  std::int64_t line_number_ = 0;
  bool has_json_line_ = false;  // one that is not blank was read
};

/// The text under `json_key` in one line of JSON; nothing for a blank line. What else the line
/// holds need not be of use: numbers of any size, and Python's NaN and Infinity, are passed over.
/// ConfigError that names `place`, which is FILE:LINE, for a line that holds no document.
std::optional<std::string> text_of_json(std::string_view line, const std::string& json_key,
                                        const std::string& place);

}  // namespace redspine
