#include "data/document_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "tests/data/scratch.h"

namespace redspine {
namespace {

using Documents = std::vector<std::string>;

Documents read_documents(const std::string& path, const DocumentFormat& format) {
  DocumentReader reader(path, format);
  Documents documents;
  while (std::optional<std::string> document = reader.next()) {
    documents.push_back(std::move(*document));
  }
  return documents;
}

Documents read_text(std::string_view text, std::optional<std::string> separator = std::nullopt) {
  const Scratch scratch;
  return read_documents(
      scratch.write("a.txt", text),
      {.is_jsonl = false, .json_key = "", .document_separator = std::move(separator)});
}

std::string jsonl_error(const std::string& name, std::string_view text) {
  const Scratch scratch;
  const std::string path = scratch.write(name, text);
  const std::string message = config_error_of([&] {
    read_documents(path, {.is_jsonl = true, .json_key = "text", .document_separator = {}});
  });
  EXPECT_EQ(message.substr(0, path.size()), path);
  return message.substr(path.size());
}

TEST(DocumentReader, TakesATextFileAsOneDocument) {
  const std::string text("one\n\ntwo\r\n\0\xff no end", 19);
  EXPECT_EQ(read_text(text), Documents{text});
  EXPECT_TRUE(read_text("").empty());
}

TEST(DocumentReader, SplitsTextAtBlankLines) {
  EXPECT_EQ(read_text("a\nb\n\nc\n", ""), (Documents{"a\nb\n", "c\n"}));
  EXPECT_EQ(read_text("\n\na\n\n\n\nb\n\n", ""), (Documents{"a\n", "b\n"}));
  EXPECT_EQ(read_text("a\n\nb", ""), (Documents{"a\n", "b"}));
  EXPECT_EQ(read_text("a\r\n\r\nb\r\n", ""), (Documents{"a\r\n", "b\r\n"}));
  EXPECT_TRUE(read_text("\n\n\n", "").empty());
}

TEST(DocumentReader, SplitsTextAtLinesThatEqualTheSeparator) {
  EXPECT_EQ(read_text("a\n\n---\nb ---\n---", "---"), (Documents{"a\n\n", "b ---\n"}));
}

TEST(DocumentReader, TakesTheKeyOfEachLineOfJson) {
  const Scratch scratch;
  const std::string path =
      scratch.write("a.jsonl",
                    "{\"body\": \"one\\nline\", \"id\": 1}\n\n{\"body\": \"\"}\n"
                    "{\"body\": \"gr\\u00fcn \\ud83d\\ude00\"}");
  EXPECT_EQ(read_documents(path, {.is_jsonl = true, .json_key = "body", .document_separator = {}}),
            (Documents{"one\nline", "grün 😀"}));
}

TEST(DocumentReader, NamesTheLineOfABadDocument) {
  const std::string good = "{\"text\": \"good\"}\n\n";
  EXPECT_EQ(jsonl_error("a.jsonl", good + "{\"text\": \"cut").substr(0, 16), ":3: is no JSON (");
  EXPECT_EQ(jsonl_error("a.jsonl", good + "{\"text\": \"\xff\"}").substr(0, 16),
            ":3: is no JSON (");
  EXPECT_EQ(jsonl_error("a.jsonl", good + "[1]"), ":3: is of JSON type array; legal: object");
  EXPECT_EQ(jsonl_error("a.jsonl", good + "{\"body\": \"x\", \"id\": 1}"),
            ":3: has no key \"text\"; its keys: body, id");
  EXPECT_EQ(jsonl_error("a.jsonl", good + "{\"text\": 5}"),
            ":3: \"text\" is of JSON type number; legal: string");
}

TEST(DocumentReader, NamesAnInputThatCannotBeRead) {
  const Scratch scratch;
  const DocumentFormat format{.is_jsonl = false, .json_key = "", .document_separator = {}};
  EXPECT_EQ(config_error_of([&] { DocumentReader(scratch / "none", format); }),
            scratch / "none" + ": cannot be opened: No such file or directory");
  EXPECT_EQ(config_error_of([&] { DocumentReader(scratch / "", format); }),
            scratch / "" + ": is a folder; legal: a file");
}

}  // namespace
}  // namespace redspine
