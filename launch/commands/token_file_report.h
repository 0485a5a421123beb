// `redspine tokenize --inspect` and `--verify`: what lies in token files, and whether it is sound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/config.h"
#include "data/tokenizer/tokenizer.h"

namespace redspine {

/// Token files, as `data.train` names them.
struct TokenFileSet {
  std::string path;
  TokenFormat format;
  std::string option;  // of the command line, for messages
};

/// Prints what each file's header and index say and its first tokens, decoded where there is a
/// tokenizer. ConfigError for a file that cannot be opened as what it should be.
void inspect_token_files(const TokenFileSet& files, const Tokenizer* tokenizer);

/// Reads all of the files: entries of the index follow from one another and all ids are below
/// `vocab_size`. Prints one line per file, and what is wrong to standard error; returns whether
/// nothing is. ConfigError where there is no such file.
bool verify_token_files(const TokenFileSet& files, std::int64_t vocab_size);

}  // namespace redspine
