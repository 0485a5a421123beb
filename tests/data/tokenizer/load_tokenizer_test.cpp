// Tokenizers by the name that the configuration gives: each kind of file is told by its content.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/data/tokenizer/bpe_tables.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

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

}  // namespace
}  // namespace redspine
