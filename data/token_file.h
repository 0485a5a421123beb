// One file of token ids, whatever its format, read as int32.
//
// Every size is checked against the header before anything is mapped, and each read asks again how
// long the file is: touching mapped pages beyond the end would kill the process without a word,
// and this way a file that was cut short during a run is an error with a name. Move-only, local to
// a rank; reads are const and safe from several threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/config.h"
#include "data/file.h"
#include "data/token_type.h"

namespace redspine {

class TokenFile {
 public:
  /// Opens and checks one file, or the pair PATH.bin and PATH.idx. `key` is the configuration key
  /// that named it; every ConfigError about this file carries it.
  static TokenFile open(const std::string& path, TokenFormat format, const std::string& key);

  TokenFile(TokenFile&& other) noexcept;
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  ~TokenFile();

  const std::string& path() const { return file_.path(); }  // of the file with the tokens
  const std::string& key() const { return key_; }
  std::int64_t num_tokens() const { return num_tokens_; }
  /// Megatron pairs know their documents; of other formats it is not known, and 0.
  std::int64_t num_documents() const { return num_documents_; }
  std::int64_t num_bytes() const { return num_tokens_ * size_of(type_); }

  /// Reads the tokens [offset, offset + tokens.size()), which must lie in the file. An id that is
  /// negative or not below `vocab_size` (at most 2^31) is a ConfigError naming file, offset and id;
  /// a file that became shorter since it was opened is an Error.
  void read(std::int64_t offset, std::span<std::int32_t> tokens, std::int64_t vocab_size) const;

 private:
  struct Layout {
    TokenType type;
    std::int64_t data_offset;  // bytes before the first token
    std::int64_t num_tokens;
    std::int64_t num_documents;
  };

  TokenFile(File file, const Layout& layout, std::string key);

  static TokenFile open_megatron(const std::string& prefix, const std::string& key);
  static TokenFile open_llmc(const std::string& path, const std::string& key);
  static TokenFile open_raw(const std::string& path, TokenType type, const std::string& key);

  File file_;
  std::string key_;
  TokenType type_;
  std::int64_t data_offset_;
  std::int64_t num_tokens_;
  std::int64_t num_documents_;
  void* map_;  // the whole file from its first byte; null: moved from
};

/// The files that `path` names, in byte order of their names: itself, or, where no such file
/// exists, what it matches as a glob. Megatron pairs are named by their prefix. ConfigError under
/// `key` if there is none.
std::vector<std::string> find_token_files(const std::string& path, TokenFormat format,
                                          const std::string& key);

}  // namespace redspine
