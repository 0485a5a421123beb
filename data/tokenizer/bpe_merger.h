// Byte-pair merges of one piece of text, in O(n log n) of its length: the symbols form a linked
// list, the offered merges a queue.
//
// A BpeMerger is immutable; its Workspace, reused from piece to piece, belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/pair_map.h"

namespace redspine {

class BpeMerger {
 public:
  class Workspace;

  /// `model` is consistent: check().
  explicit BpeMerger(const BpeModel& model);

  /// Appends the ids of `piece`, any bytes, to `tokens`. An Error above 2^31 - 1 bytes.
  void merge(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& tokens) const;

 private:
  void offer(std::size_t at, Workspace& workspace) const;

  std::array<std::int32_t, 256> byte_ids_ = {};  // [byte]
  PairMap<std::int32_t> ranks_;
  std::vector<std::int32_t> results_;  // [rank]
};

class BpeMerger::Workspace {
 private:
  friend class BpeMerger;

  struct Symbol {
    std::int32_t id;
    std::int32_t previous;    // -1: it is the first
    std::int32_t next;        // -1: it is the last
    std::int32_t offer_rank;  // of merging it with the next one; -1: there is no such merge
  };
  using Offer = std::uint64_t;  // rank << 32 | place in symbols_; the lowest goes first

  void add(Offer offer);
  bool take_lowest(Offer& offer);

  std::vector<Symbol> symbols_;  // [byte of the piece where it starts]
  // The queue. One heap for all would jump about in memory for each offer of a long piece; runs
  // that are sorted once are read in order. Offers whose symbols have changed are left in until
  // taken.
  std::vector<Offer> sorted_;  // from next_sorted_ on
  std::size_t next_sorted_ = 0;
  std::vector<Offer> heap_;  // offers since sorted_ was made
};

}  // namespace redspine
