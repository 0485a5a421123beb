// Writes token files as a stream of documents, whatever their format.
//
// Files grow as partial_file.h says and get their names only in publish(), after everything is on
// the medium: a run that was interrupted at any moment leaves nothing that could be mistaken for
// complete, and a name that another process writes to is rejected. Local, not safe from several
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/io/file.h"

namespace redspine {

/// Under which a user finds the output.
inline constexpr const char* kOutputOption = "--output";

class TokenWriter {
 public:
  /// Removes what was not published.
  virtual ~TokenWriter() = default;

  /// Adds tokens, all of them below the vocabulary's size, to the present document.
  virtual void append(std::span<const std::int32_t> tokens) = 0;
  /// Ends the present document, which has at least one token.
  virtual void end_document() = 0;

  // The end, between documents, one after another. Several writers whose files belong together
  // each take a step before any takes the next, so that never new files lie beside old ones.

  /// Puts everything on the medium, under names that say that it is not published.
  virtual void prepare() = 0;
  /// Removes an older output of the same name.
  virtual void retract() = 0;
  /// Gives the files their names.
  virtual void publish() = 0;
  /// All three, for a writer whose files stand alone.
  void finish() {
    prepare();
    retract();
    publish();
  }

  virtual std::int64_t num_documents() const = 0;
  virtual std::int64_t num_tokens() const = 0;  // of ended documents
};

/// A file of tokens that grows: u16 where the vocabulary allows, else 32 bits.
class TokenStream {
 public:
  /// `file` is empty, and outlives this.
  TokenStream(File& file, bool is_u16);

  void append(std::span<const std::int32_t> tokens);
  /// Adds raw bytes, such as a header.
  void append_bytes(std::span<const std::byte> bytes);
  /// Returns once everything is in the file, which then may be written over and synced.
  File& flush();

 private:
  void write_if_full();

  File& file_;
  bool is_u16_;
  std::vector<std::byte> buffer_;  // what file_ still lacks
};

}  // namespace redspine
