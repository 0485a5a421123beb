#include "data/tokenizer/bpe_merger.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tensor/error.h"

namespace redspine {

BpeMerger::BpeMerger(const BpeModel& model) {
  const std::vector<std::int32_t> ids = byte_ids(model);
  std::copy(ids.begin(), ids.end(), byte_ids_.begin());
  if (!model.merges.empty()) {
    results_.resize(static_cast<std::size_t>(model.merges.back().rank) + 1);
  }
  for (const BpeMerge& merge : model.merges) {
    ranks_[token_pair(merge.left, merge.right)] = merge.rank;
    results_[static_cast<std::size_t>(merge.rank)] = merge.result;
  }
}

void BpeMerger::Workspace::add(Offer offer) {
  heap_.push_back(offer);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

bool BpeMerger::Workspace::take_lowest(Offer& offer) {
  if (next_sorted_ == sorted_.size()) {
    sorted_.swap(heap_);
    heap_.clear();
    std::sort(sorted_.begin(), sorted_.end());
    next_sorted_ = 0;
    if (sorted_.empty()) return false;
  }
  if (heap_.empty() || sorted_[next_sorted_] < heap_.front()) {
    offer = sorted_[next_sorted_++];
    return true;
  }
  offer = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  heap_.pop_back();
  return true;
}

/// Looks up what the symbol at `at` and the next one merge to.
void BpeMerger::offer(std::size_t at, Workspace& workspace) const {
  Workspace::Symbol& symbol = workspace.symbols_[at];
  symbol.offer_rank = -1;
  if (symbol.next < 0) return;
  const std::int32_t next_id = workspace.symbols_[static_cast<std::size_t>(symbol.next)].id;
  const std::int32_t* rank = ranks_.find(token_pair(symbol.id, next_id));
  if (rank == nullptr) return;
  symbol.offer_rank = *rank;
  workspace.add(static_cast<std::uint64_t>(*rank) << 32 | at);
}

void BpeMerger::merge(std::string_view piece, Workspace& workspace,
                      std::vector<std::int32_t>& tokens) const {
  constexpr auto kMaxSize = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  if (piece.size() > kMaxSize) {
    throw Error(fmt::format("a text has a piece of {} bytes without a break; legal: up to {}",
                            piece.size(), kMaxSize));
  }
  std::vector<Workspace::Symbol>& symbols = workspace.symbols_;
  const auto size = static_cast<std::int32_t>(piece.size());
  symbols.resize(piece.size());
  for (std::int32_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int32_t next = i + 1 < size ? i + 1 : -1;
    symbols[at] = {byte_ids_[static_cast<unsigned char>(piece[at])], i - 1, next, -1};
  }
  for (std::size_t at = 0; at < piece.size(); ++at) offer(at, workspace);

  Workspace::Offer lowest = 0;
  while (workspace.take_lowest(lowest)) {
    const std::size_t at = lowest & 0xFFFFFFFF;
    const auto rank = static_cast<std::int32_t>(lowest >> 32);
    Workspace::Symbol& symbol = symbols[at];
    if (symbol.offer_rank != rank) continue;
    Workspace::Symbol& swallowed = symbols[static_cast<std::size_t>(symbol.next)];
    swallowed.offer_rank = -1;
    symbol.id = results_[static_cast<std::size_t>(rank)];
    symbol.next = swallowed.next;
    if (symbol.next >= 0) {
      symbols[static_cast<std::size_t>(symbol.next)].previous = static_cast<std::int32_t>(at);
    }
    offer(at, workspace);
    if (symbol.previous >= 0) offer(static_cast<std::size_t>(symbol.previous), workspace);
  }
  for (std::int32_t i = size > 0 ? 0 : -1; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
    tokens.push_back(symbols[static_cast<std::size_t>(i)].id);
  }
}

}  // namespace redspine
