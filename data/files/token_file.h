// One file of token ids, whatever its format, read as int32.
//
// Every size is checked against the header when the file is opened. Tokens are read, not mapped: a
// file that is cut short during a run is an error with a name, where touching mapped pages beyond
// its end would kill the process without a word. Memory does not grow with the file. Move-only,
// local to a rank; reads are const and safe from several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/files/fingerprint.h"
#include "data/files/token_format.h"
#include "data/io/file.h"

namespace redspine {

class TokenFile {
 public:
  /// Opens and checks one file, or the pair PATH.bin and PATH.idx. `key` is the configuration key
  /// that named it; every ConfigError about this file carries it.
  static TokenFile open(const std::string& path, TokenFormat format, const std::string& key);

  const std::string& path() const { return file_.path(); }  // of the file with the tokens
  const std::string& key() const { return key_; }
  TokenFormat format() const { return layout_.format; }
  TokenType type() const { return layout_.type; }
  std::int64_t num_tokens() const { return layout_.num_tokens; }
  /// Megatron pairs know their documents; of other formats it is not known, and 0.
  std::int64_t num_documents() const { return layout_.num_documents; }
  std::int64_t num_bytes() const { return num_tokens() * size_of(type()); }

  /// Reads the tokens [offset, offset + tokens.size()), which must lie in the file. An id that is
  /// negative or not below `vocab_size` (at most 2^31) is a ConfigError naming file, offset and id;
  /// a file that became shorter since it was opened is an Error.
  void read(std::int64_t offset, std::span<std::int32_t> tokens, std::int64_t vocab_size) const;

  /// Reads the index and at most 64 MiB of the tokens.
  FileFingerprint fingerprint() const;
  /// Tells files apart without reading them, by inode, size and time of the last change. Where it
  /// is equal on two hosts they share the file; that it differs says nothing.
  std::string identity() const;

 private:
  struct Layout {
    TokenFormat format;
    TokenType type;
    std::int64_t data_offset;  // bytes before the first token
    std::int64_t num_tokens;
    std::int64_t num_documents;
  };

  TokenFile(File file, const Layout& layout, std::string key);

  static TokenFile open_megatron(const std::string& prefix, const std::string& key);
  static TokenFile open_llmc(const std::string& path, const std::string& key);
  static TokenFile open_raw(const std::string& path, TokenType type, const std::string& key);

  void read_bytes(std::int64_t offset, std::span<std::byte> bytes) const;
  std::optional<File> open_index() const;  // of a Megatron pair

  File file_;
  std::string key_;
  Layout layout_;
};

/// The files that `path` names, in byte order of their names: itself, or, where no such file
/// exists, what it matches as a glob. Megatron pairs are named by their prefix. ConfigError under
/// `key` if there is none.
std::vector<std::string> find_token_files(const std::string& path, TokenFormat format,
                                          const std::string& key);

}  // namespace redspine
