// Finds the names of added tokens in a text, as Hugging Face's `tokenizers` do.
//
// First those that are not `normalized` in the whole text, then the others in each part between
// them: from left to right, of names that start at one place the longest. A name stays text, and is
// passed over, where its token is special and the caller wants names of special tokens as text, or
// where its token is a single word and a character of words (Unicode's \w) stands beside it. A
// token that takes the white space on its left or right takes all of it, and its bytes are gone.
//
// Immutable, local to a rank.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/tokenizer.h"

namespace redspine {

/// Those of one pass.
class NameSearch {
 public:
  NameSearch(std::vector<AddedToken> tokens, SpecialTokens special_tokens);

  struct Part {
    std::string_view text;
    const AddedToken* token;  // null: text between names
  };
  /// Appends the parts of `text`, none of them empty.
  void split(std::string_view text, std::vector<Part>& parts) const;

  /// Whether a cut before a space or after a line could change what is found.
  bool may_cross_a_cut() const;

 private:
  struct Match {
    std::size_t begin;
    std::size_t end;
    const AddedToken* token;  // null: there is none
  };
  /// The first at `begin` or after.
  Match find(std::string_view text, std::size_t begin) const;
  bool is_passed_over(std::string_view text, const Match& match) const;

  std::vector<AddedToken> tokens_;           // by first byte, longest first
  std::array<std::size_t, 257> first_ = {};  // [byte]: where its tokens start in tokens_
  SpecialTokens special_tokens_;
};

class AddedTokens {
 public:
  using Part = NameSearch::Part;

  AddedTokens(const std::vector<AddedToken>& tokens, SpecialTokens special_tokens);

  std::vector<Part> split(std::string_view text) const;

  bool may_cross_a_cut() const { return may_cross_a_cut_; }

 private:
  NameSearch in_text_;
  NameSearch in_normalized_;
  bool may_cross_a_cut_;
};

}  // namespace redspine
