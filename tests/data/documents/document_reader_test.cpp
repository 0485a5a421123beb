#include "data/documents/document_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "data/documents/input_file.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

using Documents = std::vector<std::string>;

/// Cuts anywhere, as where a token is a byte.
std::size_t anywhere(std::string_view text) { return text.size(); }

std::vector<DocumentBatch> read_batches(const std::string& path, const DocumentFormat& format,
                                        const CutPoint& cut_point = anywhere) {
  DocumentReader reader(InputFile::open(path)->next(), format, cut_point);
  std::vector<DocumentBatch> batches;
  while (std::optional<DocumentBatch> batch = reader.next()) batches.push_back(std::move(*batch));
  return batches;
}

/// The documents put together again, with checks that their parts fit.
Documents documents_of(const std::vector<DocumentBatch>& batches) {
  Documents documents;
  bool is_open = false;
  for (const DocumentBatch& batch : batches) {
    std::size_t begin = 0;
    for (const DocumentPart& part : batch.parts) {
      EXPECT_EQ(part.begins_document, !is_open);
      if (part.begins_document) documents.emplace_back();
      documents.back() += batch.text.substr(begin, part.end - begin);
      begin = part.end;
      is_open = !part.ends_document;
    }
    EXPECT_EQ(begin, batch.text.size());
  }
  EXPECT_FALSE(is_open);
  return documents;
}

Documents read_text(std::string_view text, std::optional<std::string> separator = std::nullopt) {
  const Scratch scratch;
  return documents_of(
      read_batches(scratch.write("a.txt", text),
                   {.is_jsonl = false, .document_separator = std::move(separator)}));
}

/// A text with words, lines and line ends of both kinds.
std::string long_text(std::size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) {
    text += std::to_string(i % 100000 * 7919 % 1000003) + (i % 5 == 0   ? "\n"
                                                           : i % 7 == 0 ? "\r\n"
                                                                        : " ");
  }
  text.resize(size);
  return text;
}

TEST(DocumentReader, TakesATextFileAsOneDocument) {
  const std::string text("one\n\ntwo\r\n\0\xff no end", 19);
  EXPECT_EQ(read_text(text), Documents{text});
  EXPECT_EQ(read_text(""), Documents{""});
}

TEST(DocumentReader, SplitsTextAtRunsOfBlankLines) {
  EXPECT_EQ(read_text("a\nb\n\nc\n", ""), (Documents{"a\nb\n", "c\n"}));
  EXPECT_EQ(read_text("\n\na\n\n\n\nb\n\n", ""), (Documents{"a\n", "b\n"}));
  EXPECT_EQ(read_text("a\n\nb", ""), (Documents{"a\n", "b"}));
  EXPECT_EQ(read_text("a\r\n\r\nb\r\n", ""), (Documents{"a\r\n", "b\r\n"}));
  EXPECT_TRUE(read_text("\n\n\n", "").empty());
}

TEST(DocumentReader, EndsADocumentAtEachLineThatEqualsTheSeparator) {
  EXPECT_EQ(read_text("a\n\n---\nb ---\n---", "---"), (Documents{"a\n\n", "b ---\n"}));
  EXPECT_EQ(read_text("---\n---\na\n---\n---\nb", "---"), (Documents{"", "", "a\n", "", "b"}));
  EXPECT_TRUE(read_text("", "---").empty());
}

TEST(DocumentReader, GivesLongTextInPartsOfBoundedSize) {
  const Scratch scratch;
  const std::string text = long_text(3'000'000);
  const std::string path = scratch.write("a", text);
  for (const auto& separator : {std::optional<std::string>(), std::optional<std::string>("x")}) {
    const std::vector<DocumentBatch> batches =
        read_batches(path, {.is_jsonl = false, .document_separator = separator});
    EXPECT_GT(batches.size(), 5u);
    for (const DocumentBatch& batch : batches) {
      EXPECT_LT(batch.text.size(), 2 * DocumentReader::kBatchSize);
    }
    EXPECT_EQ(documents_of(batches), Documents{text});
  }
}

TEST(DocumentReader, CutsOnlyWhereTheTokenizerAllows) {
  const Scratch scratch;
  const std::string text = long_text(1'000'000);
  const std::string path = scratch.write("a", text);
  const auto after_nines = [](std::string_view part) { return part.rfind("99") + 1; };
  const std::vector<DocumentBatch> batches =
      read_batches(path, {.is_jsonl = false, .document_separator = {}}, after_nines);
  EXPECT_GT(batches.size(), 2u);
  EXPECT_EQ(documents_of(batches), Documents{text});
  for (std::size_t b = 0; b + 1 < batches.size(); ++b) {
    EXPECT_EQ(batches[b].text.back(), '9');
    EXPECT_EQ(batches[b + 1].text.front(), '9');
  }
  const auto nowhere = [](std::string_view /*part*/) { return std::size_t{0}; };
  EXPECT_EQ(read_batches(path, {.is_jsonl = false, .document_separator = {}}, nowhere).size(), 1u);
}

TEST(DocumentReader, GivesADocumentTheSameFirstPartWhereverItLies) {
  const Scratch scratch;
  const std::string document = long_text(600'000);
  const auto after_early_nine = [](std::string_view part) {
    return std::min(part.find('9') + 1, part.size());
  };
  for (const std::size_t before : {0u, 10u, 150'000u, 250'000u, 262'000u}) {
    const std::string path = scratch.write("a", std::string(before, 'b') + "\n---\n" + document);
    std::size_t num_first_parts = 0;
    for (const CutPoint& cut_point : {CutPoint(anywhere), CutPoint(after_early_nine)}) {
      for (const DocumentBatch& batch :
           read_batches(path, {.is_jsonl = false, .document_separator = "---"}, cut_point)) {
        std::size_t begin = 0;
        for (const DocumentPart& part : batch.parts) {
          if (part.begins_document && !part.ends_document) {
            EXPECT_GE(part.end - begin, DocumentReader::kMinFirstPart) << before;
            ++num_first_parts;
          }
          begin = part.end;
        }
      }
    }
    EXPECT_EQ(num_first_parts, 1u) << before;  // the second cut point allows none
  }
}

TEST(DocumentReader, TakesALongLineForTheSeparatorNeverInParts) {
  // Lines that end in the separator just behind a block's end.
  for (std::size_t size = (std::size_t{1} << 17) - 8; size < (std::size_t{1} << 17) + 8; ++size) {
    const std::string line = std::string(size, 'x') + "---\n";
    EXPECT_EQ(read_text(line + "---\nend", "---"), (Documents{line, "end"})) << size;
  }
}

TEST(DocumentReader, NumbersTheLinesOfJson) {
  const Scratch scratch;
  const std::string text = "{\"text\": \"one\"}\n\n{\"text\": \"two\"}";
  const std::vector<DocumentBatch> batches =
      read_batches(scratch.write("a", text), {.is_jsonl = true, .document_separator = {}});
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].text, text);
  ASSERT_EQ(batches[0].parts.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batches[0].parts[i].line_number, static_cast<std::int64_t>(i) + 1);
    EXPECT_TRUE(batches[0].parts[i].begins_document && batches[0].parts[i].ends_document);
  }
}

TEST(DocumentReader, HoldsAJsonLineOfManyBlocksAsAWhole) {
  const Scratch scratch;
  const std::string line = "{\"text\": \"" + std::string(1'000'000, 'x') + "\"}\n";
  const std::vector<DocumentBatch> batches = read_batches(
      scratch.write("a", line + line + "{}"), {.is_jsonl = true, .document_separator = {}});
  EXPECT_EQ(documents_of(batches), (Documents{line, line, "{}"}));
}

TEST(DocumentReader, RejectsJsonThatIsNotOfLines) {
  const Scratch scratch;
  const auto message = [&](const std::string& text) {
    const std::string path = scratch.write("a.json", text);
    return config_error_of(
        [&] { read_batches(path, {.is_jsonl = true, .document_separator = {}}); });
  };
  const std::string path = scratch / "a.json";
  EXPECT_EQ(message("\n [{\"text\": \"x\"},\n{\"text\": \"y\"}]\n"),
            path +
                ":2: begins an array; legal: a JSON object a line; for such lines: jq -c '.[]' "
                "FILE > NEW.jsonl; to take the JSON itself for text: --format text");
  EXPECT_EQ(message("{\r\n  \"text\": \"x\"\n}"),
            path +
                ":1: begins an object of many lines; legal: a JSON object a line; for such lines: "
                "jq -c . FILE > NEW.jsonl; to take the JSON itself for text: --format text");
}

TEST(TextOfJson, TakesTheKeyOfALine) {
  EXPECT_EQ(text_of_json("{\"body\": \"one\\nline\", \"id\": 1}\n", "body", ""), "one\nline");
  EXPECT_EQ(text_of_json("{\"body\": \"gr\\u00fcn \\ud83d\\ude00\"}", "body", ""), "grün 😀");
  EXPECT_EQ(text_of_json("{\"body\": \"\"}", "body", ""), "");
  EXPECT_EQ(text_of_json(" \r\n", "body", ""), std::nullopt);
}

TEST(TextOfJson, NamesWhatIsWrongAndWhere) {
  const auto error = [](const std::string& line) {
    return config_error_of([&] { text_of_json(line, "text", "a.jsonl:3"); });
  };
  EXPECT_TRUE(error("{\"text\": \"cut").starts_with("a.jsonl:3: is no JSON ("));
  EXPECT_TRUE(error("{\"text\": \"\xff\"}").starts_with("a.jsonl:3: is no JSON ("));
  EXPECT_EQ(error("[1]"), "a.jsonl:3: is of JSON type array; legal: object");
  EXPECT_EQ(error("{\"body\": \"x\", \"id\": 1}"),
            "a.jsonl:3: has no key \"text\"; its keys: body, id");
  EXPECT_EQ(error("{\"text\": 5}"), "a.jsonl:3: \"text\" is of JSON type number; legal: string");
}

TEST(TextOfJson, PassesOverNumbersOfAnySize) {
  const std::string many(400, '9');
  for (const std::string& number : {std::string("1e999"), std::string("-1.5E+999"), many,
                                    many + "e-5", std::string("NaN"), std::string("-Infinity")}) {
    EXPECT_EQ(
        text_of_json("{\"score\": [" + number + ", 1], \"text\": \"1e999 \\\" NaN\"}", "text", ""),
        "1e999 \" NaN")
        << number;
  }
  for (const std::string number : {"01e999", "1e999e", "1.e999", "+1e999", "1e999 1"}) {
    EXPECT_NE(config_error_of([&] {
                text_of_json("{\"score\": " + number + ", \"text\": \"x\"}", "text", "a:1");
              }).find("a:1: is no JSON ("),
              std::string::npos)
        << number;
  }
  EXPECT_EQ(config_error_of([] { text_of_json("{\"text\": 1e999}", "text", "a:1"); }),
            "a:1: \"text\" is of JSON type number; legal: string");
}

}  // namespace
}  // namespace redspine
