#include "data/files/document_index.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

/// An index of sequences of `lengths`, with documents that begin with the sequences `documents`.
std::string index_bytes(const std::vector<std::int32_t>& lengths,
                        const std::vector<std::int64_t>& documents) {
  const std::string one_each = MegatronIndex{.lengths = lengths}.bytes();
  std::string bytes = one_each.substr(0, 34 + 12 * lengths.size()) + bytes_of(documents);
  bytes.replace(26, 8, bytes_of<std::uint64_t>({documents.size()}));
  return bytes;
}

DocumentIndex open_index(const Scratch& scratch, const std::string& bytes) {
  scratch.write("p.idx", bytes);
  return DocumentIndex::open(scratch / "p", "");
}

TEST(DocumentIndex, FindsTheDocumentOfEachToken) {
  const Scratch scratch;
  std::vector<std::int32_t> lengths;
  for (int i = 0; i < 50; ++i) lengths.push_back(1 + i * i % 7);
  const DocumentIndex index = open_index(scratch, MegatronIndex{.lengths = lengths}.bytes());
  EXPECT_EQ(index.num_documents(), 50);
  std::int64_t token = 0;
  for (std::int64_t d = 0; d < 50; ++d) {
    const std::int64_t begin = token;
    const std::int64_t end = begin + lengths[static_cast<std::size_t>(d)];
    for (; token < end; ++token) {
      const DocumentIndex::Document document = index.document_at(token);
      EXPECT_EQ(document.number, d);
      EXPECT_EQ(document.begin, begin);
      EXPECT_EQ(document.end, end);
    }
  }
  EXPECT_NO_THROW(index.check_all());
}

TEST(DocumentIndex, JoinsTheSequencesOfADocumentAndPassesOverEmptyOnes) {
  const Scratch scratch;
  // Documents: sequences 0 and 1; none; 2 (empty) and 3; 4.
  const DocumentIndex index = open_index(scratch, index_bytes({3, 2, 0, 4, 1}, {0, 2, 2, 4, 5}));
  const std::vector<std::int64_t> expected = {0, 0, 0, 0, 0, 2, 2, 2, 2, 3};
  for (std::size_t token = 0; token < expected.size(); ++token) {
    EXPECT_EQ(index.document_at(static_cast<std::int64_t>(token)).number, expected[token]);
  }
  EXPECT_EQ(index.document_at(7).begin, 5);
  EXPECT_EQ(index.document_at(7).end, 9);
  EXPECT_NO_THROW(index.check_all());
}

TEST(DocumentIndex, NamesTheFirstEntryThatDoesNotFollow) {
  const Scratch scratch;
  const std::string good = index_bytes({3, 2, 4}, {0, 1, 3});
  const auto error_with = [&](std::size_t at, const std::string& bytes) {
    std::string damaged = good;
    damaged.replace(at, bytes.size(), bytes);
    const DocumentIndex index = open_index(scratch, damaged);
    const std::string message = config_error_of([&] { index.check_all(); });
    return message.substr(std::min(message.size(), (scratch / "p.idx").size()));
  };
  EXPECT_EQ(error_with(34 + 12 + 8, bytes_of<std::int64_t>({8})),
            ": puts sequence 1, of 2 tokens, at byte 8; legal: 0 tokens and more, at byte 6");
  EXPECT_EQ(error_with(34 + 4, bytes_of<std::int32_t>({-1})),
            ": puts sequence 1, of -1 tokens, at byte 6; legal: 0 tokens and more, at byte 6");
  EXPECT_EQ(error_with(34 + 36, bytes_of<std::int64_t>({1})),
            ": lets document 0 begin with sequence 1; legal: 0 to 0");
  EXPECT_EQ(error_with(34 + 36 + 8, bytes_of<std::int64_t>({4})),
            ": lets document 1 begin with sequence 4; legal: 0 to 3");
  EXPECT_EQ(error_with(34 + 36 + 16, bytes_of<std::int64_t>({0})),
            ": lets document 2 begin with sequence 0; legal: 1 to 3");
}

TEST(DocumentIndex, DoesNotFollowEntriesThatContradictEachOther) {
  const Scratch scratch;
  std::string bytes = index_bytes({3, 2, 4}, {0, 1, 3});
  bytes.replace(34 + 12, 24, bytes_of<std::int64_t>({-1, INT64_MAX, INT64_MIN}));
  const DocumentIndex index = open_index(scratch, bytes);
  for (const std::int64_t token : {0, 3, 8}) {
    const std::string message = error_of([&] { index.document_at(token); });
    EXPECT_NE(message.find("p.idx: its entries around token"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace redspine
