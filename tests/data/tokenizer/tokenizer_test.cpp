#include "data/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

TEST(ByteTokenizer, GivesBackAnyBytes) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  std::vector<std::int32_t> tokens;
  ByteTokenizer().encode(text, tokens);
  ASSERT_EQ(tokens.size(), text.size());
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(tokens[static_cast<std::size_t>(byte)], byte);
  EXPECT_EQ(ByteTokenizer().decode(tokens), text);
}

TEST(ByteTokenizer, ShowsTheEndOfText) {
  EXPECT_EQ(ByteTokenizer().decode(std::vector<std::int32_t>{72, 105, 256}), "Hi<|endoftext|>");
}

TEST(ByteTokenizer, NamesAnIdThatIsNone) {
  for (const std::int32_t id : {257, -1}) {
    const std::string message = error_of([&] {
      ByteTokenizer().decode(std::vector<std::int32_t>{1, id});
    });
    EXPECT_NE(message.find("token 1 has id " + std::to_string(id) + "; legal"), std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace redspine
