// A hash table from pairs of token ids to values, in one array with linear probing: merging looks
// pairs up for every byte of new text, and a node per pair would cost a cache miss each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace redspine {

/// Two ids as one number; pairs order by the left id, then by the right one.
using TokenPair = std::uint64_t;

inline TokenPair token_pair(std::int32_t left, std::int32_t right) {
  return static_cast<TokenPair>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}
inline std::int32_t left_of(TokenPair pair) { return static_cast<std::int32_t>(pair >> 32); }
inline std::int32_t right_of(TokenPair pair) {
  return static_cast<std::int32_t>(pair & 0xFFFFFFFF);
}

template <typename Value>
class PairMap {
 public:
  PairMap() : slots_(std::size_t{1} << kFirstBits) {}

  /// Null if the pair is not there. Valid until the next operator[].
  const Value* find(TokenPair pair) const {
    const Slot& slot = slots_[place_of(pair)];
    return slot.pair == pair ? &slot.value : nullptr;
  }
  Value* find(TokenPair pair) {
    Slot& slot = slots_[place_of(pair)];
    return slot.pair == pair ? &slot.value : nullptr;
  }

  /// The value of the pair, a new one if it is not there. Valid until the next call.
  Value& operator[](TokenPair pair) {
    std::size_t place = place_of(pair);
    if (slots_[place].pair == pair) return slots_[place].value;
    if (2 * ++size_ > slots_.size()) {
      grow();
      place = place_of(pair);
    }
    slots_[place].pair = pair;
    return slots_[place].value;
  }

  std::size_t size() const { return size_; }

  /// Calls function(pair, value) for each, in no useful order.
  template <typename Function>
  void for_each(Function function) const {
    for (const Slot& slot : slots_) {
      if (slot.pair != kNone) function(slot.pair, slot.value);
    }
  }

 private:
  static constexpr TokenPair kNone = ~TokenPair{0};  // ids are not negative
  static constexpr int kFirstBits = 4;

  struct Slot {
    TokenPair pair = kNone;
    Value value = {};
  };

  std::size_t place_of(TokenPair pair) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = (pair * 0x9E3779B97F4A7C15ULL) >> shift_;
    while (slots_[place].pair != pair && slots_[place].pair != kNone) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    --shift_;
    for (Slot& slot : old) {
      if (slot.pair != kNone) slots_[place_of(slot.pair)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two of them
  int shift_ = 64 - kFirstBits;
  std::size_t size_ = 0;
};

}  // namespace redspine
