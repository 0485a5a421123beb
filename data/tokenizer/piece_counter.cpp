#include "data/tokenizer/piece_counter.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "tensor/error.h"

namespace redspine {

std::size_t PieceCounter::place_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t place = hash & mask;
  while (table_[place] != kFree) {
    const std::size_t i = table_[place];
    if (entries_[i].hash == hash && piece(i) == text) break;
    place = (place + 1) & mask;
  }
  return place;
}

void PieceCounter::add(std::string_view text, std::int64_t times) {
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  std::size_t place = place_of(text, hash);
  if (table_[place] != kFree) {
    entries_[table_[place]].count += times;
    return;
  }
  if (2 * (entries_.size() + 1) > table_.size()) {
    grow();
    place = place_of(text, hash);
  }
  table_[place] = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({hash, bytes_.size(), text.size(), times});
  bytes_.insert(bytes_.end(), text.begin(), text.end());
}

void PieceCounter::grow() {
  if (table_.size() > kFree) {
    throw Error(fmt::format("the text has more than {} distinct pieces", entries_.size()));
  }
  table_.assign(2 * table_.size(), kFree);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t place = entries_[i].hash & (table_.size() - 1);
    while (table_[place] != kFree) place = (place + 1) & (table_.size() - 1);
    table_[place] = static_cast<std::uint32_t>(i);
  }
}

}  // namespace redspine
