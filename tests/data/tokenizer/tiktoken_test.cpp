// tiktoken's files of ranks.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/splitter.h"
#include "tests/data/tokenizer/bpe_tables.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

const TokenizerSource kSource = {"FILE", "data.tokenizer"};

BpeModel parse_small_tiktoken(const std::string& text) {
  return parse_tiktoken(text, {kGpt2Pattern, "<|endoftext|>", 256}, kSource);
}

TEST(Tiktoken, MergesWhateverGivesAToken) {
  const BpeModel model = parse_small_tiktoken(small_tiktoken());
  EXPECT_EQ(model.tokens, small_model().tokens);
  EXPECT_EQ(model.pattern, kGpt2Pattern);
  EXPECT_EQ(model.end_of_text, 256);  // the rank that was left free
  EXPECT_TRUE(model.is_whole_piece_first);
  ASSERT_EQ(model.merges.size(), 4U);
  EXPECT_EQ(model.merges[0].rank, 257);
}

// The format names no pattern, so that another table would silently be cut as GPT-2's.
TEST(Tiktoken, RejectsRanksThatItDoesNotKnow) {
  std::string as_many_as_gpt2;
  for (int id = 0; id < 256; ++id) {
    as_many_as_gpt2 +=
        base64(std::string(1, static_cast<char>(id))) + " " + std::to_string(id) + "\n";
  }
  for (int id = 256; id < 50256; ++id) {
    const std::string token = {'x', static_cast<char>(id >> 8), static_cast<char>(id & 255)};
    as_many_as_gpt2 += base64(token) + " " + std::to_string(id) + "\n";
  }
  const auto expect_rejected = [](const std::string& text, const std::string& expected) {
    const std::string message = config_error_of([&] { parse_tiktoken(text, kSource); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_NE(message.find("legal: GPT-2 (50256), "), std::string::npos) << message;
    EXPECT_NE(message.find("give the tokenizer.json"), std::string::npos) << message;
  };
  expect_rejected(small_tiktoken(), "data.tokenizer: FILE: has 260 ranks, which are not");
  expect_rejected(as_many_as_gpt2, "FILE: has 50256 ranks, which are not");
}

TEST(Tiktoken, RejectsARankThatIsTheEndOfText) {
  const std::string text = small_tiktoken() + base64("zz") + " 256\n";
  const std::string message = config_error_of([&] { parse_small_tiktoken(text); });
  EXPECT_NE(message.find("has rank 256, the id of <|endoftext|>"), std::string::npos) << message;
}

TEST(Tiktoken, NamesTheLineThatIsWrong) {
  for (const std::string wrong :
       {"YWI", "YWI=", "YWI= ", "YWI= -1", "YWI= x", "YWI= 1x", "= 300", " 300", "Y*I= 300",
        "YWI= 4194304", "YWI=  300", "YWI= 99999999999999999999"}) {
    const std::string message =
        config_error_of([&] { parse_small_tiktoken(small_tiktoken() + wrong); });
    EXPECT_NE(message.find("FILE: line 261 is \"" + wrong + "\"; legal"), std::string::npos)
        << message;
  }
}

TEST(Tiktoken, NamesInconsistentRanks) {
  const auto error = [](const std::string& text) {
    return config_error_of([&] { parse_small_tiktoken(text); });
  };
  EXPECT_NE(error("").find("has no ranks"), std::string::npos);
  EXPECT_NE(error("\n\n").find("has no ranks"), std::string::npos);
  EXPECT_NE(error(small_tiktoken() + "eHg= 257").find("line 261 has rank 257"), std::string::npos);
  EXPECT_NE(error(small_tiktoken() + "aGU= 300").find("tokens 257 and 300 are the same bytes"),
            std::string::npos);
  EXPECT_NE(error("YQ== 0").find("has no token for byte 0x00"), std::string::npos);
  EXPECT_NE(error(base64(std::string(1025, 'a')) + " 300").find("legal: 1 to 1024 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace redspine
