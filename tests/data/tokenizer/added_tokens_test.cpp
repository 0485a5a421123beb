// What is expected here is what Hugging Face's tokenizers 0.23.3 give; tests/reference compares
// more.
#include "data/tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <string>

namespace redspine {
namespace {

using Kind = AddedToken::Kind;

AddedToken token(std::int32_t id, const std::string& name) { return {name, id, Kind::always}; }

/// The parts of `text`, names as their bytes in brackets.
std::string split(const std::vector<AddedToken>& tokens, std::string_view text,
                  SpecialTokens special_tokens = SpecialTokens::as_text) {
  const AddedTokens added(tokens, special_tokens);
  std::string parts;
  for (const AddedTokens::Part& part : added.split(text)) {
    const bool is_name = part.token != nullptr;
    parts.append(is_name ? "[" : "").append(part.text).append(is_name ? "]|" : "|");
  }
  return parts;
}

TEST(AddedTokens, OfASingleWordAreFoundBesideNoWord) {
  AddedToken word = token(1, "cat");
  word.is_single_word = true;
  EXPECT_EQ(split({word}, "cat concat cats, cat."), "[cat]| concat cats, |[cat]|.|");
  EXPECT_EQ(split({word}, "cat_ cat7 écat cat\u0301 日cat -cat- "),
            "cat_ cat7 écat cat\u0301 日cat -|[cat]|- |");
  EXPECT_EQ(split({word},
                  "\xFF"
                  "cat\x80"),
            "\xFF|[cat]|\x80|");
}

TEST(AddedTokens, TakeTheWhiteSpaceThatTheyAreToTake) {
  AddedToken left = token(1, "<l>");
  left.takes_left_space = true;
  AddedToken right = token(2, "<r>");
  right.takes_right_space = true;
  EXPECT_EQ(split({left, right}, "a \n\u00a0<l> b <r>\u3000 \tc"),
            "a|[ \n\u00a0<l>]| b |[<r>\u3000 \t]|c|");
  EXPECT_EQ(split({left, right}, "<r>  <l>"), "[<r>  ]|[<l>]|");  // the space is taken already
}

TEST(AddedTokens, OfNormalizedTextAreFoundAfterTheOthers) {
  AddedToken normalized = token(1, "abc");
  normalized.is_normalized = true;
  EXPECT_EQ(split({normalized, token(2, "cd")}, "abcd abc"), "ab|[cd]| |[abc]|");
  normalized.is_single_word = true;  // a part is a text of its own
  EXPECT_EQ(split({normalized, token(2, "x")}, "xabcx abcy"), "[x]|[abc]|[x]| abcy|");
}

TEST(AddedTokens, ThatStayTextHideShorterOnes) {
  AddedToken special = token(1, "<|end|>");
  special.kind = Kind::special;
  const std::vector<AddedToken> tokens = {special, token(2, "end")};
  EXPECT_EQ(split(tokens, "<|end|> end"), "<|end|> |[end]|");
  EXPECT_EQ(split(tokens, "<|end|> end", SpecialTokens::as_ids), "[<|end|>]| |[end]|");
}

TEST(AddedTokens, TellWhetherTheyMayCrossACut) {
  const auto may_cross = [](const AddedToken& added) {
    return AddedTokens({added}, SpecialTokens::as_ids).may_cross_a_cut();
  };
  EXPECT_FALSE(may_cross(token(1, " a")));
  EXPECT_TRUE(may_cross(token(1, "a b")));
  for (bool AddedToken::*const flag : {&AddedToken::is_single_word, &AddedToken::takes_left_space,
                                       &AddedToken::takes_right_space}) {
    AddedToken added = token(1, "a");
    added.*flag = true;
    EXPECT_TRUE(may_cross(added));
  }
}

}  // namespace
}  // namespace redspine
