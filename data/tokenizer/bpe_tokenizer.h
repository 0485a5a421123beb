// Byte-level byte-pair encoding as GPT-2 introduced it: a pre-tokenizer cuts the text into pieces,
// and merges join the bytes of each.
//
// Immutable; any number of threads may encode at once, each with a workspace (pieces already seen)
// that waits for the next caller in between. Local to a rank.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe_merger.h"
#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/tokenizer.h"

namespace redspine {

class BpeTokenizer final : public Tokenizer {
 public:
  /// ConfigError, naming `source`, if the model is inconsistent.
  BpeTokenizer(BpeModel model, const TokenizerSource& source, SpecialTokens special_tokens);
  ~BpeTokenizer() override;

  const BpeModel& model() const { return model_; }

  std::int32_t vocab_size() const override {
    return static_cast<std::int32_t>(model_.tokens.size());
  }
  std::int32_t end_of_text() const override { return model_.end_of_text; }
  /// Bytes that are not valid UTF-8: as for_each_piece(). (References take no such text at all.)
  void encode(std::string_view document, std::vector<std::int32_t>& tokens) const override;
  std::size_t cut_point(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;

 private:
  struct Workspace;
  class Lease;

  void encode_piece(std::string_view piece, std::string_view text, Workspace& workspace,
                    std::vector<std::int32_t>& tokens) const;
  void merge_piece(std::string_view piece, Workspace& workspace,
                   std::vector<std::int32_t>& tokens) const;

  BpeModel model_;
  BpeMerger merger_;
  AddedTokens added_tokens_;
  std::unordered_map<std::string_view, std::int32_t> whole_pieces_;  // if whole pieces come first

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_;  // guarded by mutex_
};

}  // namespace redspine
