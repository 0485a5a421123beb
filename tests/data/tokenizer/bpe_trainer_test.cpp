#include "data/tokenizer/bpe_trainer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/byte_alphabet.h"
#include "tests/support/scratch.h"

namespace redspine {
namespace {

/// Words of few letters, so that pairs overlap and are often equally frequent.
std::string random_text(int num_words, unsigned seed) {
  std::mt19937 engine(seed);
  const auto number = [&engine](int low, int high) {
    return std::uniform_int_distribution(low, high)(engine);
  };
  std::string text;
  for (int i = 0; i < num_words; ++i) {
    text += ' ';
    for (int length = number(1, 8); length > 0; --length) {
      text += static_cast<char>('a' + number(0, 2));
    }
  }
  return text;
}

BpeModel train(const std::vector<std::string>& documents, BpeTrainingConfig config) {
  BpeTrainer trainer(std::move(config));
  for (const std::string& document : documents) trainer.count(document);
  return trainer.train();
}

/// The tokens that merges made, in order.
std::vector<std::string> merged_tokens(const BpeModel& model) {
  return {model.tokens.begin() + 256, model.tokens.end() - 1};
}

/// The definition: counts all pairs of all words again before each merge.
std::vector<std::string> train_slowly(const std::string& text, std::size_t num_merges,
                                      std::int64_t min_count) {
  std::vector<std::string> tokens;  // [id]
  std::map<std::string, std::size_t> ids;
  for (const unsigned char byte : bytes_in_alphabet_order()) {
    tokens.emplace_back(1, static_cast<char>(byte));
    ids[tokens.back()] = tokens.size() - 1;
  }
  std::vector<std::vector<std::size_t>> words;
  for_each_piece(text, *make_splitter(kGpt2Pattern, ""), [&](std::string_view piece) {
    words.emplace_back();
    for (const char byte : piece) words.back().push_back(ids[std::string(1, byte)]);
  });
  while (tokens.size() < 256 + num_merges) {
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> counts;
    for (const auto& word : words) {
      for (std::size_t i = 1; i < word.size(); ++i) ++counts[{word[i - 1], word[i]}];
    }
    std::pair<std::size_t, std::size_t> best;
    std::int64_t best_count = 0;
    for (const auto& [pair, count] : counts) {  // in order of ids
      if (count <= best_count) continue;
      best = pair;
      best_count = count;
    }
    if (best_count < min_count) break;
    const std::string bytes = tokens[best.first] + tokens[best.second];
    const auto [place, is_new] = ids.emplace(bytes, tokens.size());
    if (is_new) tokens.push_back(bytes);
    for (auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (std::pair(word[i], word[i + 1]) != best) continue;
        word[i] = place->second;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return {tokens.begin() + 256, tokens.end()};
}

TEST(BpeTrainer, JoinsTheMostFrequentPairFirst) {
  // ug occurs 6 times, then hug 5, then " hug" 4, then "un" and "pu..." fewer.
  const BpeModel model = train({"hug hug hug hug hug pug pun"}, {.vocab_size = 257 + 3});
  EXPECT_EQ(merged_tokens(model), (std::vector<std::string>{"ug", "hug", " hug"}));
}

TEST(BpeTrainer, EqualsTheDefinition) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const std::string text = random_text(300, seed);
    for (const std::int64_t min_count : {1, 2, 5}) {
      const BpeModel model = train({text}, {.vocab_size = 257 + 200, .min_count = min_count});
      EXPECT_EQ(merged_tokens(model), train_slowly(text, 200, min_count)) << seed;
    }
  }
}

TEST(BpeTrainer, BreaksTiesByTheSmallestIds) {
  const BpeModel first = train({"yw\nxz\nyw\nxz"}, {.vocab_size = 258});
  EXPECT_EQ(merged_tokens(first), std::vector<std::string>{"xz"});
  const BpeModel second = train({"xz\nxw\nxz\nxw"}, {.vocab_size = 258});
  EXPECT_EQ(merged_tokens(second), std::vector<std::string>{"xw"});
}

TEST(BpeTrainer, GivesTheSameForAnyNumberOfThreads) {
  std::vector<std::string> documents;
  for (unsigned i = 0; i < 64; ++i) documents.push_back(random_text(100, i));
  const std::string expected = tokenizer_json(train(documents, {.vocab_size = 500}));
  for (const std::size_t num_threads : {2, 3, 7}) {
    BpeTrainer trainer({.vocab_size = 500});
    {
      std::vector<std::jthread> threads;
      for (std::size_t thread = 0; thread < num_threads; ++thread) {
        threads.emplace_back([&, thread] {
          for (std::size_t i = thread; i < documents.size(); i += num_threads) {
            trainer.count(documents[i]);
          }
        });
      }
    }
    EXPECT_EQ(tokenizer_json(trainer.train()), expected);
  }
}

TEST(BpeTrainer, GivesTheSameForADocumentInParts) {
  const std::string text = random_text(1000, 5);
  BpeTrainer trainer({.vocab_size = 400});
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t cut = trainer.cut_point(rest.substr(0, 100));
    const std::size_t size = rest.size() <= 100 ? rest.size() : cut;
    trainer.count(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  EXPECT_EQ(tokenizer_json(trainer.train()), tokenizer_json(train({text}, {.vocab_size = 400})));
}

TEST(BpeTrainer, PutsBytesFirstAndTheEndOfTextLast) {
  const BpeModel model = train({"aa aa"}, {.vocab_size = 1000});
  EXPECT_EQ(model.tokens[0], "!");
  EXPECT_EQ(merged_tokens(model), std::vector<std::string>{"aa"});  // no other pair occurs twice
  EXPECT_EQ(model.tokens.back(), "<|endoftext|>");
  EXPECT_EQ(model.end_of_text, 257);
}

TEST(BpeTrainer, MakesAModelOfNothing) {
  const BpeModel model = train({}, {.vocab_size = 1000});
  EXPECT_EQ(model.tokens.size(), 257U);
  check(model, {"trained", "key"});
}

TEST(BpeTrainer, LearnsBytesThatAreNoUtf8AsSinglePieces) {
  const BpeModel model = train({"\xFF\xFF\xFF\xFF"}, {.vocab_size = 1000});
  EXPECT_TRUE(merged_tokens(model).empty());
}

TEST(BpeTrainer, ReportsProgress) {
  BpeTrainer trainer({.vocab_size = 300});
  trainer.count(random_text(300, 1));
  std::vector<std::int64_t> done;
  trainer.train([&](std::int64_t num_done, std::int64_t num_wanted) {
    done.push_back(num_done);
    EXPECT_EQ(num_wanted, 299);
  });
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 299);
}

TEST(BpeTrainer, NamesAVocabularyThatIsTooSmall) {
  const std::string message = config_error_of([] { BpeTrainer trainer({.vocab_size = 256}); });
  EXPECT_NE(message.find("--vocab-size: is 256; legal: 257"), std::string::npos) << message;
}

}  // namespace
}  // namespace redspine
