#include "data/tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "data/tokenizer/piece_cache.h"
#include "data/tokenizer/splitter.h"
#include "tensor/error.h"

namespace redspine {
namespace {

BpeModel checked(BpeModel model, const TokenizerSource& source) {
  check(model, source);
  return model;
}

std::unordered_map<std::string_view, std::int32_t> whole_pieces_of(const BpeModel& model) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  if (!model.is_whole_piece_first) return ids;
  const std::unordered_set<std::int32_t> outside = ids_outside_vocabulary(model);
  for (std::size_t i = 0; i < model.tokens.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (!model.tokens[i].empty() && !outside.contains(id)) ids.emplace(model.tokens[i], id);
  }
  return ids;
}

}  // namespace

/// What a thread needs while it encodes.
struct BpeTokenizer::Workspace {
  std::unique_ptr<Splitter> splitter;
  BpeMerger::Workspace merger = {};
  PieceCache cache = {};
};

/// A workspace for the length of a call.
class BpeTokenizer::Lease {
 public:
  explicit Lease(const BpeTokenizer& tokenizer) : tokenizer_(tokenizer) {
    {
      const std::scoped_lock lock(tokenizer_.mutex_);
      if (!tokenizer_.idle_.empty()) {
        workspace_ = std::move(tokenizer_.idle_.back());
        tokenizer_.idle_.pop_back();
        return;
      }
    }
    workspace_ = std::make_unique<Workspace>(
        Workspace{.splitter = make_splitter(tokenizer_.model_.pattern, "")});
  }
  ~Lease() {
    const std::scoped_lock lock(tokenizer_.mutex_);
    tokenizer_.idle_.push_back(std::move(workspace_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Workspace& operator*() const { return *workspace_; }

 private:
  const BpeTokenizer& tokenizer_;
  std::unique_ptr<Workspace> workspace_;
};

BpeTokenizer::BpeTokenizer(BpeModel model, const TokenizerSource& source,
                           SpecialTokens special_tokens)
    : model_(checked(std::move(model), source)),
      merger_(model_),
      added_tokens_(model_.added_tokens, special_tokens),
      whole_pieces_(whole_pieces_of(model_)) {
  // A pattern that does not compile shall fail now, by name.
  idle_.push_back(std::make_unique<Workspace>(
      Workspace{.splitter = make_splitter(model_.pattern, source.key)}));
}

BpeTokenizer::~BpeTokenizer() = default;

void BpeTokenizer::encode(std::string_view document, std::vector<std::int32_t>& tokens) const {
  const Lease lease(*this);
  Workspace& workspace = *lease;
  for (const AddedTokens::Part& part : added_tokens_.split(document)) {
    if (part.token != nullptr) {
      tokens.push_back(part.token->id);
      continue;
    }
    for_each_piece(part.text, *workspace.splitter, [&](std::string_view piece) {
      encode_piece(piece, part.text, workspace, tokens);
    });
  }
}

void BpeTokenizer::encode_piece(std::string_view piece, std::string_view text, Workspace& workspace,
                                std::vector<std::int32_t>& tokens) const {
  if (piece.size() > PieceCache::kMaxPieceSize) {
    merge_piece(piece, workspace, tokens);
    return;
  }
  const PieceCache::Key key = PieceCache::key_of(piece, text);
  PieceCache::Slot& slot = workspace.cache.slot_of(key);
  if (slot.key == key) {
    for (std::int32_t i = 0; i < slot.num_tokens; ++i) {
      tokens.push_back(slot.tokens[static_cast<std::size_t>(i)]);
    }
    return;
  }
  const std::size_t num_before = tokens.size();
  merge_piece(piece, workspace, tokens);
  PieceCache::fill(slot, key, std::span(tokens).subspan(num_before));
}

void BpeTokenizer::merge_piece(std::string_view piece, Workspace& workspace,
                               std::vector<std::int32_t>& tokens) const {
  const auto whole = whole_pieces_.find(piece);
  if (whole != whole_pieces_.end()) {
    tokens.push_back(whole->second);
  } else {
    merger_.merge(piece, workspace.merger, tokens);
  }
}

std::size_t BpeTokenizer::cut_point(std::string_view text) const {
  if (added_tokens_.may_cross_a_cut()) return 0;
  const Lease lease(*this);
  return (*lease).splitter->cut_point(text);
}

std::string BpeTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<std::size_t>(tokens[i]);
    if (tokens[i] < 0 || id >= model_.tokens.size() || model_.tokens[id].empty()) {
      throw Error(fmt::format("token {} has id {}; legal: one of the {} of the tokenizer", i,
                              tokens[i], model_.tokens.size()));
    }
    text += model_.tokens[id];
  }
  return text;
}

}  // namespace redspine
