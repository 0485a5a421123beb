#include "data/tokenizer/bpe_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizer/splitter.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/data/tokenizer/bpe_tables.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Json = nlohmann::json;

const TokenizerSource kSource = {"FILE", "data.tokenizer"};

void expect_equal(const BpeModel& model, const BpeModel& expected) {
  EXPECT_EQ(model.pattern, expected.pattern);
  EXPECT_EQ(model.tokens, expected.tokens);
  EXPECT_EQ(model.is_whole_piece_first, expected.is_whole_piece_first);
  EXPECT_EQ(model.end_of_text, expected.end_of_text);
  ASSERT_EQ(model.merges.size(), expected.merges.size());
  for (std::size_t i = 0; i < model.merges.size(); ++i) {
    EXPECT_EQ(model.merges[i].left, expected.merges[i].left);
    EXPECT_EQ(model.merges[i].right, expected.merges[i].right);
    EXPECT_EQ(model.merges[i].result, expected.merges[i].result);
    EXPECT_EQ(model.merges[i].rank, expected.merges[i].rank);
  }
  ASSERT_EQ(model.added_tokens.size(), expected.added_tokens.size());
  for (std::size_t i = 0; i < model.added_tokens.size(); ++i) {
    EXPECT_EQ(model.added_tokens[i].name, expected.added_tokens[i].name);
    EXPECT_EQ(model.added_tokens[i].id, expected.added_tokens[i].id);
    EXPECT_EQ(model.added_tokens[i].kind, expected.added_tokens[i].kind);
    EXPECT_EQ(model.added_tokens[i].is_single_word, expected.added_tokens[i].is_single_word);
    EXPECT_EQ(model.added_tokens[i].takes_left_space, expected.added_tokens[i].takes_left_space);
    EXPECT_EQ(model.added_tokens[i].takes_right_space, expected.added_tokens[i].takes_right_space);
    EXPECT_EQ(model.added_tokens[i].is_normalized, expected.added_tokens[i].is_normalized);
  }
}

Json small_json() { return Json::parse(tokenizer_json(small_model())); }

TEST(TokenizerJson, ReadsWhatItWrites) {
  expect_equal(parse_tokenizer_json(tokenizer_json(small_model()), kSource), small_model());
}

TEST(TokenizerJson, KeepsPatternAndKindsOfTokens) {
  BpeModel model = small_model();
  model.pattern = kLlama3Pattern;
  model.is_whole_piece_first = true;
  model.added_tokens.push_back({"[a b]", 261, AddedToken::Kind::always});
  model.tokens.emplace_back("[a b]");
  expect_equal(parse_tokenizer_json(tokenizer_json(model), kSource), model);
}

TEST(TokenizerJson, KeepsHowAnAddedTokenIsFound) {
  for (bool AddedToken::*const flag :
       {&AddedToken::is_single_word, &AddedToken::takes_left_space, &AddedToken::takes_right_space,
        &AddedToken::is_normalized}) {
    BpeModel model = small_model();
    model.added_tokens[0].*flag = true;
    expect_equal(parse_tokenizer_json(tokenizer_json(model), kSource), model);
  }
}

TEST(TokenizerJson, TakesAnAddedTokenThatMergesGive) {
  Json json = small_json();
  json["added_tokens"].push_back({{"id", 257}, {"content", "he"}, {"special", false}});
  json["added_tokens"].push_back({{"id", 259}, {"content", "Ġthe"}, {"special", true}});
  const BpeModel model = parse_tokenizer_json(json.dump(), kSource);
  EXPECT_TRUE(model.added_tokens[1].is_in_vocabulary);
  EXPECT_EQ(model.tokens[257], "he");
  EXPECT_EQ(model.tokens[259], " the");  // its bytes, not its name
  EXPECT_EQ(model.merges.size(), 4U);
}

TEST(TokenizerJson, RejectsMergesThatWereCut) {
  for (const Json& merges : {Json::array(), Json::array({"h e"})}) {
    Json json = small_json();
    json["model"]["merges"] = merges;
    const std::string message =
        config_error_of([&] { parse_tokenizer_json(json.dump(), kSource); });
    EXPECT_NE(message.find("tokens of several bytes, and not token 25"), std::string::npos)
        << message;
  }
  EXPECT_EQ(parse_tokenizer_json(tokenizer_json(byte_model()), kSource).merges.size(), 0U);
}

TEST(TokenizerJson, ReadsMergesAsPairs) {
  Json json = small_json();
  json["model"]["merges"] = Json::parse(R"([["h", "e"], ["Ġ", "t"], ["Ġt", "he"], ["a", "a"]])");
  expect_equal(parse_tokenizer_json(json.dump(), kSource), small_model());
}

TEST(TokenizerJson, LeavesGapsBetweenIds) {
  Json json = small_json();
  json["added_tokens"].push_back({{"id", 270}, {"content", "<x>"}, {"special", true}});
  const BpeModel model = parse_tokenizer_json(json.dump(), kSource);
  EXPECT_EQ(model.tokens.size(), 271U);
  EXPECT_EQ(model.tokens[269], "");
}

TEST(TokenizerJson, TakesTheUsualNamesOfTheEndOfText) {
  for (const char* name : {"<|end_of_text|>", "</s>"}) {
    Json json = small_json();
    json["model"]["vocab"].erase("<|endoftext|>");
    json["added_tokens"][0]["content"] = name;
    EXPECT_EQ(parse_tokenizer_json(json.dump(), kSource).end_of_text, 256);
  }
}

TEST(TokenizerJson, NamesWhatIsWrong) {
  struct Case {
    const char* path;
    Json value;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"/model", nullptr, "model.type is null; legal: \"BPE\""},
      {"/model/type", "Unigram", "model.type is \"Unigram\"; legal: \"BPE\""},
      {"/model/vocab", Json::object(), "has no vocabulary"},
      {"/model/vocab", Json::array(), "has no vocabulary"},
      {"/model/vocab/he", 258, "two tokens have the id 258"},
      {"/model/vocab/he", -1, "token \"he\" has id -1; legal: 0 to 4194303"},
      {"/model/vocab/he", 1e300, "token \"he\" has id 1e+300; legal: 0 to"},
      {"/model/vocab/he", 4294967296, "token \"he\" has id 4294967296; legal: 0 to"},
      {"/model/vocab/日", 261, "token 261 is called \"日\"; legal"},
      {"/model/vocab/<|endoftext|>", 300, "has id 300, and 256 as an added token"},
      {"/model/merges", nullptr, "model.merges is no list"},
      {"/model/merges/1", "a", "merge 1 is \"a\"; legal"},
      {"/model/merges/1", "a b c", "merge 1 is \"a b c\"; legal"},
      {"/model/merges/1", Json::array({"a"}), "merge 1 is [\"a\"]; legal"},
      {"/model/merges/1", "a b", "merge 1 of \"a\" and \"b\" needs the token \"ab\""},
      {"/model/merges/1", "zz z", "needs the token \"zz\""},
      {"/model/merges/1", "h e", "merge 1 of tokens 104 and 101 stands twice"},
      {"/model/byte_fallback", true, "byte_fallback is true; legal: null"},
      {"/model/dropout", 0.1, "dropout is 0.1; legal: null"},
      {"/normalizer", {{"type", "NFC"}}, "normalizer is {\"type\":\"NFC\"}; legal: null"},
      {"/pre_tokenizer", nullptr, "pre_tokenizer is null; legal"},
      {"/pre_tokenizer/add_prefix_space", true, "pre_tokenizer is {"},
      {"/pre_tokenizer/type", "Whitespace", "pre_tokenizer is {"},
      {"/added_tokens", Json::array(), "token 256 is called"},
      {"/added_tokens/0/content", "<end>", "two tokens have the id 256"},
      {"/added_tokens/0/id", 5, "has id 256, and 5 as an added token"},
      {"/added_tokens/0/id", "5", "has id \"5\"; legal"},
      {"/added_tokens/0/content", nullptr, "an entry without content"},
      {"/added_tokens/1", {{"id", 256}, {"content", "b"}}, "\"<|endoftext|>\" has too"},
  };
  for (const Case& wrong : cases) {
    Json json = small_json();
    if (std::string_view(wrong.path) == "/added_tokens") {
      json["model"]["vocab"].erase("<|endoftext|>");
      json["model"]["vocab"]["<|日|>"] = 256;
    }
    json[Json::json_pointer(wrong.path)] = wrong.value;
    const std::string message =
        config_error_of([&] { parse_tokenizer_json(json.dump(), kSource); });
    EXPECT_NE(message.find("data.tokenizer: FILE: "), std::string::npos) << message;
    EXPECT_NE(message.find(wrong.message), std::string::npos)
        << wrong.path << ": " << message << "\nis not: " << wrong.message;
  }
}

TEST(TokenizerJson, NamesAByteThatIsMissing) {
  Json json = small_json();
  json["model"]["vocab"].erase("Ā");
  const std::string message = config_error_of([&] { parse_tokenizer_json(json.dump(), kSource); });
  EXPECT_NE(message.find("has no token for byte 0x00"), std::string::npos) << message;
}

TEST(TokenizerJson, NamesTheMissingEndOfText) {
  Json json = small_json();
  json["added_tokens"] = Json::array();
  const std::string message = config_error_of([&] { parse_tokenizer_json(json.dump(), kSource); });
  EXPECT_NE(message.find("has no token that ends a text"), std::string::npos) << message;
}

TEST(TokenizerJson, NamesAPatternThatIsNone) {
  BpeModel model = small_model();
  model.pattern = "(a";
  const Scratch scratch;
  const std::string path = scratch.write("tokenizer.json", tokenizer_json(model));
  const std::string message = config_error_of([&] { load_tokenizer(path, "key"); });
  EXPECT_NE(message.find("pattern \"(a\""), std::string::npos) << message;
}

TEST(TokenizerJson, RejectsWhatIsNoJson) {
  for (const std::string& text : {std::string(), std::string("{"), std::string(100000, '['),
                                  std::string("\xFF"), std::string("{\"a\":\"\xFF\"}")}) {
    const std::string message = config_error_of([&] { parse_tokenizer_json(text, kSource); });
    EXPECT_NE(message.find("FILE: is no JSON"), std::string::npos) << message;
  }
}

TEST(VocabAndMerges, ReadsGpt2sFiles) {
  expect_equal(parse_vocab_and_merges(small_vocab(), kSmallMerges, kSource), small_model());
}

TEST(VocabAndMerges, NamesWhatIsWrong) {
  const auto error = [](const std::string& vocab, std::string_view merges) {
    return config_error_of([&] { parse_vocab_and_merges(vocab, merges, kSource); });
  };
  EXPECT_NE(error(small_vocab(), "h e\nhe").find("merge 1 is \"he\"; legal"), std::string::npos);
  EXPECT_NE(error(small_vocab(), "x y").find("needs the token \"xy\""), std::string::npos);
  EXPECT_NE(error("{}", "").find("has no vocabulary"), std::string::npos);
  EXPECT_NE(error("[]", "").find("has no vocabulary"), std::string::npos);
  EXPECT_NE(error("", "").find("is no JSON"), std::string::npos);
}

TEST(VocabAndMerges, RejectsMergesThatWereCut) {
  const std::string message =
      config_error_of([] { parse_vocab_and_merges(small_vocab(), "h e\n", kSource); });
  EXPECT_NE(message.find("has 1 merges, which give 1 of its 4 tokens of several bytes"),
            std::string::npos)
      << message;
}

TEST(SaveTokenizerJson, ReplacesAFile) {
  const Scratch scratch;
  const std::string path = scratch.write("tokenizer.json", "old");
  PartialFile file(path, "");
  save_tokenizer_json(small_model(), file);
  EXPECT_EQ(read_file(path), tokenizer_json(small_model()));
}

}  // namespace
}  // namespace redspine
