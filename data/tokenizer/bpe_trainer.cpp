#include "data/tokenizer/bpe_trainer.h"

#include <fmt/format.h>

#include <utility>

#include "data/tokenizer/bpe_learner.h"
#include "data/tokenizer/piece_counter.h"

namespace redspine {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::int32_t kMinVocabSize = 257;

BpeTrainingConfig checked(BpeTrainingConfig config) {
  ConfigProblems problems;
  config.validate(problems);
  problems.throw_if_any();
  return config;
}

}  // namespace

void BpeTrainingConfig::validate(ConfigProblems& problems) const {
  if (vocab_size < kMinVocabSize || vocab_size > kMaxVocabSize) {
    problems.add("--vocab-size", fmt::format("is {}; legal: {} (256 bytes and {}) to {}",
                                             vocab_size, kMinVocabSize, kEndOfText, kMaxVocabSize));
  }
  if (min_count < 1) {
    problems.add("--min-count", fmt::format("is {}; legal: 1 or more", min_count));
  }
}

/// What one thread at a time counts with.
struct BpeTrainer::Counter {
  std::unique_ptr<Splitter> splitter;
  PieceCounter pieces = {};
};

/// A counter for the length of a call.
class BpeTrainer::Lease {
 public:
  explicit Lease(BpeTrainer& trainer) : trainer_(trainer) {
    const std::scoped_lock lock(trainer_.mutex_);
    if (trainer_.idle_.empty()) {
      trainer_.counters_.push_back(std::make_unique<Counter>(
          Counter{.splitter = make_splitter(trainer_.config_.pattern, "")}));
      counter_ = trainer_.counters_.back().get();
    } else {
      counter_ = trainer_.idle_.back();
      trainer_.idle_.pop_back();
    }
  }
  ~Lease() {
    const std::scoped_lock lock(trainer_.mutex_);
    trainer_.idle_.push_back(counter_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Counter& operator*() const { return *counter_; }

 private:
  BpeTrainer& trainer_;
  Counter* counter_;
};

BpeTrainer::BpeTrainer(BpeTrainingConfig config)
    : config_(checked(std::move(config))), cutter_(make_splitter(config_.pattern, "")) {}

BpeTrainer::~BpeTrainer() = default;

void BpeTrainer::count(std::string_view text) {
  const Lease lease(*this);
  PieceCounter& pieces = (*lease).pieces;
  for_each_piece(text, *(*lease).splitter,
                 [&pieces](std::string_view piece) { pieces.add(piece, 1); });
}

std::size_t BpeTrainer::cut_point(std::string_view text) const { return cutter_->cut_point(text); }

std::int64_t BpeTrainer::num_pieces() const {
  const std::scoped_lock lock(mutex_);
  std::size_t num_pieces = 0;
  for (const Counter* counter : idle_) num_pieces += counter->pieces.num_pieces();
  return static_cast<std::int64_t>(num_pieces);
}

BpeModel BpeTrainer::train(const std::function<void(std::int64_t, std::int64_t)>& on_progress) {
  PieceCounter pieces;
  for (std::unique_ptr<Counter>& counter : counters_) {
    const PieceCounter& part = counter->pieces;
    if (pieces.num_pieces() == 0) {
      pieces = std::move(counter->pieces);
    } else {
      for (std::size_t i = 0; i < part.num_pieces(); ++i) pieces.add(part.piece(i), part.count(i));
    }
    counter.reset();
  }
  idle_.clear();
  counters_.clear();

  BpeModel model;
  model.pattern = config_.pattern;
  BpeLearner learner(pieces);
  pieces = {};
  learner.learn(static_cast<std::size_t>(config_.vocab_size) - 1, config_.min_count, on_progress,
                model);
  model.end_of_text = static_cast<std::int32_t>(model.tokens.size());
  model.tokens.emplace_back(kEndOfText);
  model.added_tokens = {{std::string(kEndOfText), model.end_of_text, AddedToken::Kind::special}};
  return model;
}

}  // namespace redspine
