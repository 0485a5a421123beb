// Finds the names of added tokens in a text: the leftmost, and of those that start there the
// longest.
//
// Immutable, local to a rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/bpe_model.h"

namespace redspine {

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    std::size_t begin;        // text.size(): there is none
    const AddedToken* token;  // null: there is none
  };
  /// The first match in `text`.
  Match find(std::string_view text) const;

  /// Whether a cut before the space at text[at] could go through a name.
  bool may_have_space() const { return may_have_space_; }

 private:
  std::vector<AddedToken> tokens_;           // by first byte, longest first
  std::array<std::size_t, 257> first_ = {};  // [byte]: where its tokens start in tokens_
  bool may_have_space_ = false;
};

}  // namespace redspine
