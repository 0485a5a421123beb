#include "data/tokenizer/bpe_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizer/byte_alphabet.h"
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

std::string small_vocab() { return small_json()["model"]["vocab"].dump(); }
constexpr std::string_view kSmallMerges = "#version: 0.2\nh e\nĠ t\r\nĠt he\na a\n";

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

std::string small_tiktoken() {
  const BpeModel model = small_model();
  std::string text;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (id == 256) continue;
    text += base64(model.tokens[id]) + " " + std::to_string(id) + "\n";
  }
  return text;
}

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

TEST(TokenizerJson, RefusesMergesThatWereCut) {
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

TEST(TokenizerJson, RefusesWhatIsNoJson) {
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

TEST(VocabAndMerges, RefusesMergesThatWereCut) {
  const std::string message =
      config_error_of([] { parse_vocab_and_merges(small_vocab(), "h e\n", kSource); });
  EXPECT_NE(message.find("has 1 merges, which give 1 of its 4 tokens of several bytes"),
            std::string::npos)
      << message;
}

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
TEST(Tiktoken, RefusesRanksThatItDoesNotKnow) {
  std::string as_many_as_gpt2;
  for (int id = 0; id < 256; ++id) {
    as_many_as_gpt2 +=
        base64(std::string(1, static_cast<char>(id))) + " " + std::to_string(id) + "\n";
  }
  for (int id = 256; id < 50256; ++id) {
    const std::string token = {'x', static_cast<char>(id >> 8), static_cast<char>(id & 255)};
    as_many_as_gpt2 += base64(token) + " " + std::to_string(id) + "\n";
  }
  const auto expect_refused = [](const std::string& text, const std::string& expected) {
    const std::string message = config_error_of([&] { parse_tiktoken(text, kSource); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_NE(message.find("legal: GPT-2 (50256), "), std::string::npos) << message;
    EXPECT_NE(message.find("give the tokenizer.json"), std::string::npos) << message;
  };
  expect_refused(small_tiktoken(), "data.tokenizer: FILE: has 260 ranks, which are not");
  expect_refused(as_many_as_gpt2, "FILE: has 50256 ranks, which are not");
}

TEST(Tiktoken, RefusesARankThatIsTheEndOfText) {
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

TEST(LoadTokenizer, KnowsEachKindOfFileByItsContent) {
  const Scratch scratch;
  const std::string json = scratch.write("mine", "\n " + tokenizer_json(small_model()));
  scratch.write("vocab.json", small_vocab());
  scratch.write("merges.txt", kSmallMerges);
  for (const std::string& path : {json, scratch / ""}) {
    std::vector<std::int32_t> tokens;
    load_tokenizer(path, "key")->encode(" the", tokens);
    EXPECT_EQ(tokens, std::vector<std::int32_t>{259}) << path;
  }
  const std::string ranks = scratch.write("ranks", small_tiktoken());
  EXPECT_NE(config_error_of([&] { load_tokenizer(ranks, "key"); }).find("has 260 ranks"),
            std::string::npos);
  scratch.write("tokenizer.json", tokenizer_json(byte_model()));  // goes first
  EXPECT_EQ(load_tokenizer(scratch / "", "key")->vocab_size(), 257);
}

TEST(LoadTokenizer, MakesTheByteTokenizer) {
  for (const char* name : {"", "bytes"}) {
    EXPECT_EQ(load_tokenizer(name, "key")->vocab_size(), ByteTokenizer::kVocabSize);
  }
}

TEST(LoadTokenizer, NamesWhatIsNotThere) {
  const Scratch scratch;
  const std::string folder = config_error_of([&] { load_tokenizer(scratch / "", "key"); });
  EXPECT_NE(folder.find("is a folder without tokenizer.json"), std::string::npos) << folder;
  const std::string file = config_error_of([&] { load_tokenizer(scratch / "none", "key"); });
  EXPECT_NE(file.find("key: " + scratch / "none"), std::string::npos) << file;
}

TEST(SaveTokenizerJson, ReplacesAFile) {
  const Scratch scratch;
  const std::string path = scratch.write("tokenizer.json", "old");
  PartialFile file(path, "");
  save_tokenizer_json(small_model(), file);
  EXPECT_EQ(read_file(path), tokenizer_json(small_model()));
}

TEST(ByteAlphabet, SpellsBytesAsGpt2Does) {
  EXPECT_EQ(spell_bytes(" a\n\xFF\xAD"), "ĠaĊÿŃ");
  EXPECT_EQ(read_spelling("ĠaĊÿŃ"), " a\n\xFF\xAD");
  EXPECT_EQ(bytes_in_alphabet_order()[0], '!');
  EXPECT_EQ(bytes_in_alphabet_order()[188], 0);
  EXPECT_EQ(bytes_in_alphabet_order()[255], 0xAD);
}

TEST(ByteAlphabet, ReadsWhatItSpells) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(read_spelling(spell_bytes(bytes)), bytes);
}

TEST(ByteAlphabet, RefusesOtherCharacters) {
  for (const std::string_view wrong : {" ", "a\n", "\u0144", "日", "\xAD", "\u00AD"}) {
    EXPECT_EQ(read_spelling(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace redspine
