// A call of tokenize() with a token for each byte, and the text that it has written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/files/token_file.h"
#include "data/tokenize.h"
#include "data/tokenizer/tokenizer.h"

namespace redspine {

inline TokenizeSummary tokenize_bytes(const TokenizeOptions& options) {
  return tokenize(options, ByteTokenizer());
}

/// The text of a pair, with the ends of text visible.
inline std::string text_of(const std::string& prefix) {
  const TokenFile file = TokenFile::open(prefix, TokenFormat::automatic, "");
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.num_tokens()));
  file.read(0, tokens, ByteTokenizer::kVocabSize);
  return ByteTokenizer().decode(tokens);
}

}  // namespace redspine
