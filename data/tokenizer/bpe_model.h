// The tables of a byte-level byte-pair encoding, as tokenizer files hold them (bpe_file.h).
//
// A plain value, local to a rank. check() holds it consistent; BpeTokenizer encodes with it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace redspine {

/// `left` next to `right` becomes `result`. Of all merges that a piece offers, the one of the
/// lowest rank comes first; among equals, the leftmost. Merges of one rank give the same token.
struct BpeMerge {
  std::int32_t left;
  std::int32_t right;
  std::int32_t result;
  std::int32_t rank;
};

/// A token that is found in a text by its name, before any merges.
struct AddedToken {
  enum class Kind {
    special,  // only where the caller wants names of special tokens to be tokens
    always,   // wherever its name stands
  };
  std::string name;
  std::int32_t id;
  Kind kind;
  /// Merges may give it, too.
  bool is_in_vocabulary = false;
  // How it is found: added_tokens.h.
  bool is_single_word = false;
  bool takes_left_space = false;
  bool takes_right_space = false;
  bool is_normalized = false;
};

struct BpeModel {
  std::string pattern;              // of the pre-tokenizer, splitter.h
  std::vector<std::string> tokens;  // [id] bytes; of an added token outside the vocabulary its
                                    // name; empty: no token
  std::vector<BpeMerge> merges;     // in order of rank
  std::vector<AddedToken> added_tokens;
  bool is_whole_piece_first = false;  // a piece that is a token is left whole, merges or not
  std::int32_t end_of_text = 0;
};

/// Where a tokenizer came from, for error messages.
struct TokenizerSource {
  std::string path;
  std::string key;  // of the configuration, or the command line's option

  /// Throws ConfigError: "PATH: text".
  [[noreturn]] void fail(const std::string& text) const;
};

/// ConfigError unless all 256 bytes are tokens, no token and no merge stands twice, merges give
/// what they say and are ordered, and added tokens are tokens.
void check(const BpeModel& model, const TokenizerSource& source);

/// ConfigError where more than a hundredth of the tokens of several bytes are given by no merge, as
/// in a table that was cut. Published tables have a few such: special ones not marked as added.
void check_is_whole(const BpeModel& model, const TokenizerSource& source);

/// The end of text among added tokens by its usual names: <|endoftext|> (GPT-2),
/// <|end_of_text|> (Llama 3), </s>. ConfigError if there is none.
std::int32_t find_end_of_text(const BpeModel& model, const TokenizerSource& source);

/// The largest number of ids that files are accepted with.
inline constexpr std::int32_t kMaxVocabSize = std::int32_t{1} << 22;

/// Ids of added tokens that no merge knows.
std::unordered_set<std::int32_t> ids_outside_vocabulary(const BpeModel& model);

/// Ids of the 256 single bytes. [byte]; -1 where a byte is no token.
std::vector<std::int32_t> byte_ids(const BpeModel& model);

}  // namespace redspine
