#include "data/tokenizer/bpe_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "tests/data/tokenizer/bpe_tables.h"

namespace redspine {
namespace {

/// The definition: of all neighbours that merge, again and again the leftmost of the lowest rank.
std::vector<std::int32_t> merge_slowly(const BpeModel& model, std::string_view piece) {
  const std::vector<std::int32_t> bytes = byte_ids(model);
  std::vector<std::int32_t> ids;
  for (const char byte : piece) ids.push_back(bytes[static_cast<unsigned char>(byte)]);
  while (true) {
    const BpeMerge* best = nullptr;
    std::size_t best_at = 0;
    for (std::size_t at = 0; at + 1 < ids.size(); ++at) {
      for (const BpeMerge& merge : model.merges) {
        const bool fits = merge.left == ids[at] && merge.right == ids[at + 1];
        if (fits && (best == nullptr || merge.rank < best->rank)) {
          best = &merge;
          best_at = at;
        }
      }
    }
    if (best == nullptr) return ids;
    ids[best_at] = best->result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(BpeMerger, MergesByRankAndThenFromTheLeft) {
  std::mt19937 engine(1);
  const auto number = [&engine](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(engine);
  };
  for (int round = 0; round < 200; ++round) {
    BpeModel model = byte_model();
    std::vector<std::int32_t> usable = {'a', 'b', 'c'};
    for (int i = 0; i < 20; ++i) {
      const std::int32_t left = usable[number(usable.size())];
      usable.push_back(add_merge(model, left, usable[number(usable.size())], i));
    }
    if (round % 2 == 0) {  // as tiktoken ranks: by result, so that several merges have one rank
      for (BpeMerge& merge : model.merges) merge.rank = merge.result;
      std::stable_sort(model.merges.begin(), model.merges.end(),
                       [](const BpeMerge& a, const BpeMerge& b) { return a.rank < b.rank; });
    }
    check(model, {"random", "key"});
    const BpeMerger merger(model);
    BpeMerger::Workspace workspace;
    for (int i = 0; i < 20; ++i) {
      std::string piece;
      for (std::size_t length = number(40) + 1; length > 0; --length) {
        piece += static_cast<char>('a' + number(3));
      }
      std::vector<std::int32_t> tokens;
      merger.merge(piece, workspace, tokens);
      ASSERT_EQ(tokens, merge_slowly(model, piece)) << piece;
    }
  }
}

TEST(BpeMerger, TakesALongPieceInLittleMoreThanLinearTime) {
  BpeModel model = byte_model();
  std::int32_t token = byte_ids(model)['a'];
  for (int i = 0; i < 10; ++i) token = add_merge(model, token, token, i);
  const BpeMerger merger(model);
  BpeMerger::Workspace workspace;
  std::vector<std::int32_t> tokens;
  merger.merge(std::string(1 << 20, 'a'), workspace, tokens);  // hours, were it quadratic
  EXPECT_EQ(tokens, std::vector<std::int32_t>(1024, token));
}

}  // namespace
}  // namespace redspine
