#include "data/tokenizer/bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/data/tokenizer/bpe_tables.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Ids = std::vector<std::int32_t>;

const TokenizerSource kSource = {"file", "key"};

BpeTokenizer make(BpeModel model, SpecialTokens special_tokens = SpecialTokens::as_text) {
  return {std::move(model), kSource, special_tokens};
}

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  Ids tokens;
  tokenizer.encode(text, tokens);
  return tokens;
}

std::string random_bytes(std::mt19937& engine, std::size_t size) {
  std::string text;
  while (text.size() < size)
    text += static_cast<char>(std::uniform_int_distribution(0, 255)(engine));
  return text;
}

TEST(BpeTokenizer, MergesWithinPiecesOnly) {
  const BpeTokenizer tokenizer = make(small_model());
  const Ids ids = encode(tokenizer, " the the t he");
  EXPECT_EQ(ids, (Ids{259, 259, 258, ' ', 257}));
}

TEST(BpeTokenizer, AppendsToWhatIsThere) {
  Ids tokens = {7};
  make(small_model()).encode(" the", tokens);
  EXPECT_EQ(tokens, (Ids{7, 259}));
}

TEST(BpeTokenizer, GivesBackAnyBytes) {
  std::mt19937 engine(1);
  for (const SpecialTokens special : {SpecialTokens::as_text, SpecialTokens::as_ids}) {
    const BpeTokenizer tokenizer = make(small_model(), special);
    for (std::size_t size = 0; size < 300; ++size) {
      const std::string text = random_bytes(engine, size) + " the <|endoftext|>\xC3";
      ASSERT_EQ(tokenizer.decode(encode(tokenizer, text)), text);
    }
  }
}

TEST(BpeTokenizer, EncodesTheSameFromItsCache) {
  const BpeTokenizer tokenizer = make(small_model());
  std::mt19937 engine(2);
  std::string text;
  for (int i = 0; i < 2000; ++i) {  // pieces of all lengths around the longest that is kept
    text += std::string(" ").append(std::uniform_int_distribution<std::size_t>(1, 40)(engine), 'a');
  }
  const Ids first = encode(tokenizer, text);
  EXPECT_EQ(encode(tokenizer, text), first);
  Ids without;
  for (std::size_t begin = 0; begin < text.size();) {  // a new tokenizer for each piece
    const std::size_t end = std::min(text.find(' ', begin + 1), text.size());
    const Ids piece = encode(make(small_model()), text.substr(begin, end - begin));
    without.insert(without.end(), piece.begin(), piece.end());
    begin = end;
    if (begin > 4000) break;
  }
  EXPECT_EQ(Ids(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(without.size())),
            without);
}

TEST(BpeTokenizer, TakesTheNameOfASpecialTokenForText) {
  const Ids ids = encode(make(small_model()), "a<|endoftext|>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 256), 0);
  EXPECT_EQ(ids.size(), 14U);
}

TEST(BpeTokenizer, TakesTheNameOfASpecialTokenForTheTokenWhereAsked) {
  const BpeTokenizer tokenizer = make(small_model(), SpecialTokens::as_ids);
  EXPECT_EQ(encode(tokenizer, "aa<|endoftext|><|endoftext|> the<|endoftext"),
            (Ids{260, 256, 256, 259, '<', '|', 'e', 'n', 'd', 'o', 'f', 't', 'e', 'x', 't'}));
}

TEST(BpeTokenizer, FindsTheLongestOfAddedTokens) {
  BpeModel model = small_model();
  for (const std::string name : {"[x", "[x]", "[x]]", "]"}) {
    model.added_tokens.push_back(
        {name, static_cast<std::int32_t>(model.tokens.size()), AddedToken::Kind::always});
    model.tokens.push_back(name);
  }
  const BpeTokenizer tokenizer = make(model);
  EXPECT_EQ(encode(tokenizer, "[[x]]][x"), (Ids{'[', 263, 264, 261}));
}

TEST(BpeTokenizer, EncodesTheSameOnAnyNumberOfThreads) {
  const BpeTokenizer tokenizer = make(small_model());
  std::mt19937 engine(3);
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int i = 0; i < 200; ++i) {
    texts.push_back(random_bytes(engine, 100) + " the aaa" + random_bytes(engine, 5));
    expected.push_back(encode(make(small_model()), texts.back()));
  }
  std::vector<std::vector<Ids>> results(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(results.size());
    for (std::vector<Ids>& result : results) {
      threads.emplace_back([&] {
        for (const std::string& text : texts) result.push_back(encode(tokenizer, text));
      });
    }
  }
  for (const std::vector<Ids>& result : results) EXPECT_EQ(result, expected);
}

TEST(BpeTokenizer, LeavesAWholePieceThatIsATokenWhereTheModelSaysSo) {
  BpeModel model = byte_model();
  model.tokens.emplace_back("abc");  // no merge gives it
  EXPECT_EQ(encode(make(model), "abc abc"), (Ids{'a', 'b', 'c', ' ', 'a', 'b', 'c'}));
  model.is_whole_piece_first = true;
  EXPECT_EQ(encode(make(model), "abc abc"), (Ids{257, ' ', 'a', 'b', 'c'}));
}

TEST(BpeTokenizer, HasNoCutPointWhereAnAddedTokenHasASpace) {
  BpeModel model = small_model();
  EXPECT_EQ(make(model).cut_point("the end"), 3U);
  model.added_tokens.push_back({"the end", 261, AddedToken::Kind::always});
  model.tokens.emplace_back("the end");
  EXPECT_EQ(make(model).cut_point("the end"), 0U);
}

TEST(BpeTokenizer, NamesAnIdThatIsNone) {
  BpeModel model = small_model();
  model.tokens.resize(300);
  model.tokens.emplace_back("last");
  const BpeTokenizer tokenizer = make(model);
  EXPECT_EQ(tokenizer.vocab_size(), 301);
  for (const std::int32_t id : {-1, 299, 301}) {
    const std::string message = error_of([&] { tokenizer.decode(Ids{1, id}); });
    EXPECT_NE(message.find("token 1 has id " + std::to_string(id) + "; legal"), std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace redspine
