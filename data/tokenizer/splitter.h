// Pre-tokenizers: cut a text into the pieces that byte-pair merges never cross.
//
// A pattern is a regular expression as tokenizer files spell it. Those of GPT-2, cl100k and Llama 3
// run as hand-written code (pattern_splitter.h), any other by PCRE2 (regex_splitter.h).
// A Splitter has working memory of its own: one per thread, local to a rank.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizer/utf8.h"

namespace redspine {

class Splitter {
 public:
  virtual ~Splitter() = default;

  /// One past the last byte of the piece that starts at `begin` < text.size(). `text` is valid
  /// UTF-8, and `begin` is 0 or what an earlier call for this text returned.
  virtual std::size_t piece_end(std::string_view text, std::size_t begin) = 0;

  /// A place where pieces end whatever follows `text`, as late as possible; 0 if none is known.
  virtual std::size_t cut_point(std::string_view text) const = 0;
};

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// tiktoken's: as Llama 3's, but white space up to the end of the text is one piece.
inline constexpr std::string_view kCl100kPattern =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|)"
    R"( ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";

/// Calls function(piece) for each piece of any bytes, in order. A byte that is not part of valid
/// UTF-8 is a piece of its own, and what lies on either side of it is split as a text of its own.
template <typename Function>
void for_each_piece(std::string_view text, Splitter& splitter, Function function) {
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_utf8_prefix(text));
    for (std::size_t begin = 0; begin < valid.size();) {
      const std::size_t end = splitter.piece_end(valid, begin);
      function(valid.substr(begin, end - begin));
      begin = end;
    }
    text.remove_prefix(valid.size());
    if (text.empty()) return;
    function(text.substr(0, 1));
    text.remove_prefix(1);
  }
}

/// ConfigError under `key` if PCRE2 does not accept `pattern`.
std::unique_ptr<Splitter> make_splitter(std::string_view pattern, const std::string& key);

}  // namespace redspine
